/** Resolves the references of a `vault apply` document: secrets and certificates in files or in the environment. */
import { basename, resolve } from 'node:path';
import { Problem } from '../../../base/problem.ts';
import { Secret } from '../../../base/secret.ts';
import { describeFileError } from '../../../base/system-error.ts';
import { checkedTargetSettings } from '../../../domain/deploy-targets/deploy-targets.ts';
import type { DesiredState, StateIssue } from '../../../domain/desired-state/desired-state.ts';
import type { SecretReference } from '../../../domain/desired-state/secret-reference.ts';
import type {
  WantedDeployTarget,
  WantedDnsProvider,
  WantedImport,
  WantedIssuer,
  WantedState,
} from '../../../domain/desired-state/wanted-state.ts';
import { eabKeyIn, knownDirectory } from '../../../domain/issuers/issuer-inputs.ts';
import { certificatesIn } from '../../../domain/trusted-certificates.ts';
import { readBundleApart } from '../../../net/bundle-process.ts';
import { readInput } from '../../terminal/input-file.ts';
import type { Terminal } from '../../terminal/terminal.ts';

type Around = Pick<Terminal, 'environment' | 'world'> & {
  /** The directory that relative file names start from. */
  readonly folder: string;
};

/** The resolved state and the errors; references with errors are left out of the state. */
export type Resolved = {
  readonly wanted: WantedState;
  /** The file for the secret of each new API key. */
  readonly secretFiles: ReadonlyMap<string, string>;
  readonly issues: readonly StateIssue[];
};

/** Resolves all references and collects their errors instead of throwing. */
export async function resolveReferences(state: DesiredState, around: Around): Promise<Resolved> {
  const issues: StateIssue[] = [];
  const attempt = async <T>(path: StateIssue['path'], work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      issues.push({
        path,
        message: error instanceof Problem ? error.body.detail : describeFileError(error),
      });
      return undefined;
    }
  };
  const issuers = new Map<string, WantedIssuer>();
  for (const [name, definition] of state.issuers) {
    if (definition.type === 'local-ca') {
      issuers.set(name, { privateCa: { name, ...definition } });
      continue;
    }
    const { type: _, eab_hmac_key, ca_pem, accept_terms, directory_url, ...rest } = definition;
    const path = ['issuers', name];
    const directory = directory_url ?? knownDirectory(name);
    if (directory === undefined) issues.push({ path, message: 'directory_url is missing' });
    const eabKey = await attempt([...path, 'eab_hmac_key'], () => eabKeyOf(eab_hmac_key, around));
    const ca = await attempt([...path, 'ca_pem'], () => trustOf(ca_pem, around));
    const input = { name, directory_url: directory ?? '', ...rest };
    issuers.set(name, { input, secrets: { eabKey, ca: ca ?? null, acceptsTerms: accept_terms } });
  }
  const providers = new Map<string, WantedDnsProvider>();
  for (const [name, { secret: reference, ...rest }] of state.dns_providers) {
    const path = ['dns_providers', name, 'secret'];
    const secret = await attempt(path, () => secretOf(reference, around));
    providers.set(name, { input: { name, ...rest }, secret });
  }
  const imports = new Map<string, WantedImport>();
  for (const [name, { labels = [], ...files }] of state.imported_certificates) {
    const bundle = await attempt(['imported_certificates', name], () => bundleOf(files, around));
    imports.set(name, { bundle, labels });
  }
  const targets = new Map<string, WantedDeployTarget>();
  for (const [name, { secret: reference, ...rest }] of state.deploy_targets) {
    const secret = await attempt(['deploy_targets', name, 'secret'], async () => {
      const text = await secretOf(reference, around);
      return text && (await checkedTargetSettings(rest.type, text));
    });
    targets.set(name, { input: { name, ...rest }, secret });
  }
  const keys = [...state.api_keys];
  const wanted: WantedState = {
    issuers,
    dns_providers: providers,
    certificates: new Map([...state.certificates].map(([name, rest]) => [name, { ...rest, name } as never])),
    imported_certificates: imports,
    deploy_targets: targets,
    acme_clients: new Map([...state.acme_clients].map(([name, rest]) => [name, { name, ...rest }])),
    api_keys: new Map(keys.map(([name, { secret_file: _, ...rest }]) => [name, { name, ...rest }])),
  };
  const secretFiles = new Map(
    keys.flatMap(([name, { secret_file: file }]) =>
      file === undefined ? [] : [[name, resolve(around.folder, file)] as const],
    ),
  );
  return { wanted, secretFiles, issues };
}

async function secretOf(
  reference: SecretReference | undefined,
  { environment, folder }: Around,
): Promise<Secret | undefined> {
  if (reference === undefined || reference === 'keep') return undefined;
  if ('file' in reference) return new Secret(await fileIn(folder, reference.file));
  const value = environment[reference.env];
  if (value) return new Secret(Buffer.from(value));
  throw new Error(`environment variable ${reference.env} is not set`);
}

async function eabKeyOf(reference: SecretReference | undefined, around: Around): Promise<Secret | undefined> {
  const text = await secretOf(reference, around);
  if (text === undefined) return undefined;
  const key = eabKeyIn(text.expose().toString('latin1'));
  if (key !== undefined) return key;
  throw new Error('not an HMAC key; write it as the CA shows it: letters, digits, - and _');
}

async function trustOf(
  value: string | { readonly file: string } | undefined,
  { folder }: Around,
): Promise<string | null> {
  if (value === undefined) return null;
  const text = typeof value === 'string' ? value : (await fileIn(folder, value.file)).toString('latin1');
  const pem = certificatesIn(text);
  if (pem !== undefined) return pem;
  throw new Error('not a certificate; use PEM blocks that begin with -----BEGIN CERTIFICATE-----');
}

async function bundleOf(
  {
    fullchain_file,
    private_key_file,
    allow_ca: allowCa,
  }: {
    fullchain_file?: string | undefined;
    private_key_file?: string | undefined;
    allow_ca?: boolean | undefined;
  },
  { folder, world }: Around,
) {
  const files = [fullchain_file, private_key_file].filter((file) => file !== undefined);
  if (files.length === 0) return undefined;
  const sources = [];
  for (const file of files) sources.push({ name: basename(file), bytes: await fileIn(folder, file) });
  return readBundleApart(world, { sources, allowCa });
}

async function fileIn(folder: string, file: string): Promise<Buffer> {
  return readInput(resolve(folder, file), { stdin: undefined as never });
}
