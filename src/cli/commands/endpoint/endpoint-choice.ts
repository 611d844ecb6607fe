/** How the endpoint commands choose endpoints, read bundles and check several at a time. */
import { OperatorError } from '../../../base/operator-error.ts';
import { didYouMean } from '../../../domain/closest-names.ts';
import type { RequireFit } from '../../../domain/endpoints/endpoint-changes.ts';
import { addressText, parseAddress, usualPort } from '../../../domain/endpoints/endpoint-inputs.ts';
import {
  type EndpointSearch,
  type EndpointView,
  endpointView,
  findEndpoints,
} from '../../../domain/endpoints/endpoints.ts';
import type { Vault } from '../../../domain/vault.ts';
import { requireCertificate } from '../../../domain/versions/certificate-lookup.ts';
import type { RemoteVault } from '../../remote/remote-vault.ts';
import { readInput } from '../../terminal/input-file.ts';
import { Misuse } from '../../terminal/misuse.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { suggestingThere } from '../certificate/certificates-there.ts';
import { labelQuery } from '../label-options.ts';

/** The server, of all commands about one. */
export const addressOption = {
  address: {
    type: 'string',
    valueHint: 'HOST:PORT',
    required: true,
    positional: 'or-flag',
    description: 'the server, such as www.example.com:443',
  },
} as const;

/** Throws Misuse for options that say where this process may connect to, if another one does with this option. */
export function refuseOwnRules(
  args: { readonly 'endpoint-allow': string | undefined; readonly 'endpoint-forbid': string | undefined },
  other: string,
  reason: string,
): void {
  if (args['endpoint-allow'] === undefined && args['endpoint-forbid'] === undefined) return;
  throw new Misuse(`--endpoint-allow, --endpoint-forbid and ${other} exclude each other`, reason);
}

type Search = Omit<EndpointSearch, 'limit'>;

/** The endpoints that match. Throws `certificate_not_found`. */
export async function endpointsHere(vault: Vault, search: Search): Promise<EndpointView[]> {
  const { certificate } = search;
  if (certificate !== undefined) await requireCertificate(vault.db.reader, certificate, { suggest: true });
  const rows = await Array.fromAsync(findEndpoints(vault, { ...search, limit: Number.POSITIVE_INFINITY }));
  return rows.flat().map((row) => endpointView(row, vault.world.now()));
}

/** The same at a server. */
export function endpointsThere(
  remote: RemoteVault,
  { certificate, state, labels }: Search,
): Promise<EndpointView[]> {
  const query = { certificate, state, label: labelQuery(labels) };
  return suggestingThere(remote, certificate, remote.list<EndpointView>('/endpoints', query));
}

/** The endpoint that the options select. Throws OperatorError and Misuse. */
export function theOne(
  all: readonly EndpointView[],
  { address, 'server-name': name }: { readonly address: string; readonly 'server-name': string | undefined },
): EndpointView {
  const found = atAddress(all, address).filter(
    (one) => name === undefined || one.server_name === serverNameFrom(name),
  );
  const [one, ...others] = found;
  if (one === undefined) {
    throw new OperatorError(`no endpoint ${address} with the server name ${name}`, {
      hint: 'Try: vault endpoint list',
    });
  }
  if (others.length === 0) return one;
  const names = found.map(({ server_name: its }) => its || 'none').join(', ');
  throw new Misuse(`${found.length} endpoints at ${address}`, `Select one by --server-name: ${names}.`);
}

/** On this machine there is no reach. */
export const hereAllFit: RequireFit = () => undefined;

/** The server name of an option: `none` for none. */
export function serverNameFrom(text: string): string {
  return text === 'none' ? '' : text;
}

/** The text of all PEM files. */
export async function bundleFrom(files: readonly string[], terminal: Terminal): Promise<string> {
  const texts: string[] = [];
  for (const file of files) texts.push((await readInput(file, terminal)).toString('latin1'));
  return texts.join('\n');
}

/** The endpoints at an address, whose usual port may be omitted. Throws OperatorError if there are none. */
export function atAddress(all: readonly EndpointView[], text: string): EndpointView[] {
  const { host = text, port } = parseAddress(text) ?? {};
  const found = all.filter(
    ({ address, starttls }) => address === addressText({ host, port: port ?? usualPort(starttls) }),
  );
  if (found.length > 0) return found;
  const known = [...new Set(all.map(({ address }) => address))];
  throw new OperatorError(`no endpoint ${text}`, {
    hint: didYouMean(text, known, 'Try: vault endpoint list'),
  });
}

/** The address as a word of a command line: brackets are a pattern in some shells. */
export function addressWord(address: string): string {
  return address.startsWith('[') ? `'${address}'` : address;
}

/** Checks at a time. */
const checksAtOnce = 8;

/** What `check` returns for each, in the same order. */
export async function checkingAll(
  chosen: readonly EndpointView[],
  check: (one: EndpointView) => Promise<EndpointView>,
): Promise<EndpointView[]> {
  const checked: EndpointView[] = [];
  const left = chosen.entries();
  const work = async () => {
    for (const [at, one] of left) checked[at] = await check(one);
  };
  await Promise.all(Array.from({ length: checksAtOnce }, work));
  return checked;
}
