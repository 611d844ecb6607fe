/** `vault inspect`: decodes a file, standard input or what a TLS server presents. It needs no vault. */
import { existsSync } from 'node:fs';
import type { Secret } from '../../base/secret.ts';
import type { BundleSource } from '../../crypto/bundles/certificate-bundle.ts';
import { looksLikePkcs12 } from '../../crypto/bundles/pkcs12.ts';
import { encodePem } from '../../crypto/pem.ts';
import { inspectApart } from '../../net/bundle-process.ts';
import { presentedChain, type TlsAddress } from '../../net/presented-chain.ts';
import { commandWithoutVault } from '../runtime/command.ts';
import { readInput } from '../terminal/input-file.ts';
import { Misuse } from '../terminal/misuse.ts';
import { jsonText } from '../terminal/output.ts';
import { askPassword } from '../terminal/prompt.ts';
import { secretText } from '../terminal/secret-text.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { inspectionText, type TlsFacts } from './inspection-text.ts';

/** Bundles of all public roots have a quarter of that. */
const largestFile = 4 * 1024 * 1024;

export const inspectCommand = commandWithoutVault({
  name: 'inspect',
  description: 'Decode a certificate, key or request, or a TLS server',
  examples: [
    { does: 'Show what a file holds, and whether key and chain fit', line: 'vault inspect fullchain.pem' },
    { does: 'Show what a TLS server presents', line: 'vault inspect www.example.com:443' },
    {
      does: 'Decode a PKCS#12 file as JSON',
      line: 'vault inspect mail.p12 --password-file password.txt --json',
    },
  ],
  options: {
    what: {
      type: 'string',
      valueHint: 'FILE|-|HOST:PORT',
      required: true,
      positional: true,
      description: 'a file (PEM, DER, PKCS#12 or PKCS#7), - for standard input, or a TLS server',
    },
    'password-file': {
      type: 'string',
      valueHint: 'FILE',
      description: 'a file with the password of a PKCS#12 file (default: prompt for it)',
    },
    json: { type: 'boolean', description: 'print JSON' },
  },
  run: async (args, terminal) => {
    const server = existsSync(args.what) ? undefined : addressIn(args.what);
    if (args.what === '-' && args['password-file'] === '-') {
      throw new Misuse('only one of them can read standard input', 'Name a file.');
    }
    const { source, tls } = await sourceOf(args.what, server, terminal);
    const password = looksLikePkcs12(source.bytes)
      ? await passwordFor(args['password-file'], terminal)
      : undefined;
    const { world } = terminal;
    const found = await inspectApart({ source, password, host: server?.host, now: world.now() });
    terminal.stdout.write(
      args.json
        ? jsonText({ source: source.name, tls, ...found })
        : inspectionText(source.name, tls, found, world.now()),
    );
  },
});

async function sourceOf(
  what: string,
  server: TlsAddress | undefined,
  terminal: Terminal,
): Promise<{ readonly source: BundleSource; readonly tls: TlsFacts | null }> {
  if (server === undefined) {
    const bytes = await readInput(what, terminal, largestFile);
    return { source: { name: what === '-' ? 'standard input' : what, bytes }, tls: null };
  }
  const { certificates, protocol, cipher } = await presentedChain(terminal.world, server);
  const text = certificates.map((der) => encodePem('CERTIFICATE', der)).join('');
  return { source: { name: what, bytes: Buffer.from(text) }, tls: { protocol, cipher } };
}

/** The host and port in `www.example.com:443` or `[2001:db8::1]:443`. */
function addressIn(text: string): TlsAddress | undefined {
  const [, v6, name, digits] =
    /^(?:\[([0-9A-Fa-f:.]{2,45})\]|([^\s:/[\]]{1,253})):(\d{1,5})$/.exec(text) ?? [];
  const host = v6 ?? name;
  const port = Number(digits);
  return host !== undefined && port >= 1 && port <= 65_535 ? { host, port } : undefined;
}

async function passwordFor(
  file: string | undefined,
  terminal: Terminal,
): Promise<Secret<string> | undefined> {
  if (file !== undefined) return secretText(await readInput(file, terminal));
  return terminal.stdin.isTTY ? askPassword(terminal, 'Password of the PKCS#12 file: ') : undefined;
}
