/**
 * Which vault a command works on: the one in the data directory, or one that a server serves elsewhere. The options of
 * the server stand before the command, so that they never collide with its own.
 */
import { isSecureUrl } from '../../base/secure-url.ts';
import { Misuse } from '../terminal/misuse.ts';
import type { Environment, ServerChoice } from '../terminal/terminal.ts';

export const serverOptions = {
  server: {
    type: 'string',
    valueHint: 'URL',
    description: 'work on the vault of this server, such as https://vault.example.com',
  },
  'ca-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'trust only these PEM certificates for the server (default: the public CAs)',
  },
  pin: {
    type: 'string',
    valueHint: 'PIN',
    description: 'trust the server by its public key alone, such as sha256//… (default: by CAs)',
  },
} as const;

type Name = keyof typeof serverOptions;

type Given = { readonly [K in Name]?: { readonly value: string; readonly from: string } };

/** The environment variable of each option. */
export const serverVariables: Readonly<Record<Name, string>> = {
  server: 'CERTVAULT_SERVER',
  'ca-file': 'CERTVAULT_SERVER_CA_FILE',
  pin: 'CERTVAULT_SERVER_PIN',
};

/** Splits the options of the server off the beginning of a command line. Throws Misuse. */
export function takeServerOptions(argv: readonly string[]): {
  readonly given: Given;
  readonly rest: readonly string[];
} {
  const given: { [K in Name]?: { value: string; from: string } } = {};
  let rest = argv;
  for (;;) {
    const [word = '', next] = rest;
    const [, name, inline] = /^--(server|ca-file|pin)(?:=([\s\S]*))?$/.exec(word) ?? [];
    if (name === undefined) return { given, rest };
    const value = inline ?? next;
    const hint = `Write --${name} ${serverOptions[name as Name].valueHint}.`;
    if (value === undefined || (inline === undefined && value.startsWith('-'))) {
      throw new Misuse(`--${name} needs a value`, hint);
    }
    if (given[name as Name] !== undefined) throw new Misuse(`--${name} is given twice`, 'Give it only once.');
    given[name as Name] = { value, from: `--${name}` };
    rest = rest.slice(inline === undefined ? 2 : 1);
  }
}

/** The server to work on; undefined for the vault on this machine. Throws Misuse that names what is wrong. */
export function serverChoice(given: Given, environment: Environment): ServerChoice | undefined {
  const of = (name: Name) => {
    const value = environment[serverVariables[name]];
    return (
      given[name] ??
      (value === undefined || value === '' ? undefined : { value, from: serverVariables[name] })
    );
  };
  // biome-ignore lint/plugin/refused-headers: an option, no header
  const server = of('server');
  // Variables that are exported for all servers do no harm without one.
  const [lonely] = Object.values(given);
  if (server === undefined) {
    if (lonely === undefined) return undefined;
    throw new Misuse(`${lonely.from} needs a server`, 'Add --server URL.');
  }
  const url = serverUrl(server);
  const [trust] = [given.pin, given['ca-file']].filter((option) => option !== undefined);
  if (trust !== undefined && url.startsWith('http:')) {
    throw new Misuse(`${trust.from} needs an https URL`, 'A server at an http URL presents no certificate.');
  }
  // An option overrides the variable of the other.
  const chosen = (name: Name, other: Name) =>
    given[name] ?? (given[other] === undefined ? of(name) : undefined);
  const caFile = chosen('ca-file', 'pin');
  const pin = chosen('pin', 'ca-file');
  if (caFile !== undefined && pin !== undefined) {
    throw new Misuse(
      `${caFile.from} and ${pin.from} exclude each other`,
      'A pin decides alone. Use one of them.',
    );
  }
  if (pin !== undefined && !/^sha256\/\/[A-Za-z0-9+/]{43}=$/.test(pin.value)) {
    throw new Misuse(
      `${pin.from}: "${pin.value}" is not the pin of a public key`,
      'Use sha256// and the base64 SHA-256 of the public key. "vault inspect HOST" shows it.',
    );
  }
  return { url, caFile: caFile?.value, pin: pin?.value };
}

function serverUrl({ value, from }: { readonly value: string; readonly from: string }): string {
  const url = URL.parse(value);
  if (url !== null && isSecureUrl(value) && url.pathname === '/' && url.search === '') return url.origin;
  throw new Misuse(
    `${from}: "${value}" is not the URL of a vault`,
    'Use an https URL without a path, such as https://vault.example.com. http works only for this machine.',
  );
}
