/** All types of DNS providers, and the parser of their secret files. */

import type { z } from 'zod';
import { describeIssue } from '../../base/input-issue.ts';
import type { InputError } from '../../base/problem.ts';
import { DnsProviderError, type DnsProviderType } from '../dns-provider.ts';
import { acmeDns } from './acme-dns.ts';
import { acmeSh } from './acme-sh.ts';
import { azureDns } from './azure-dns.ts';
import { cloudflare } from './cloudflare.ts';
import { desec } from './desec.ts';
import { digitalocean } from './digitalocean.ts';
import { execHook } from './exec-hook.ts';
import { googleCloudDns } from './google-cloud-dns.ts';
import { hetzner } from './hetzner.ts';
import { lexicon } from './lexicon.ts';
import { manual } from './manual.ts';
import { ovh } from './ovh.ts';
import { rfc2136 } from './rfc2136.ts';
import { route53 } from './route53.ts';
import { webhook } from './webhook.ts';

/** By `--type`; generic ones first, in the order of the help text. */
export const dnsProviderTypes: ReadonlyMap<string, DnsProviderType> = new Map(
  [
    ...[checked(rfc2136), checked(execHook), checked(webhook), checked(acmeDns), checked(manual)],
    ...[checked(lexicon), checked(acmeSh)],
    ...[checked(cloudflare), checked(route53), checked(azureDns), checked(googleCloudDns)],
    ...[checked(digitalocean), checked(hetzner), checked(ovh), checked(desec)],
  ].map((type) => [type.type, type]),
);

/**
 * Parses a secret file: a mapping in YAML or JSON, validated and with defaults filled in, which can be stored as JSON
 * and passed to `create`. For a type with a `plain` setting, it can also be that value alone on one line. Throws
 * DnsProviderError with the missing, invalid or unknown settings, and never shows a value.
 */
export async function readProviderConfig(type: SecretFileType, text: string): Promise<unknown> {
  return checkedConfig(type, await readSecretMapping(type, text));
}

/** What a secret file belongs to: a DNS provider, or another type with such a file. */
export type SecretFileType = Pick<DnsProviderType, 'type' | 'config' | 'plain'>;

/** The same without validation. */
export async function readSecretMapping(
  type: Omit<SecretFileType, 'config'>,
  text: string,
): Promise<Readonly<Record<string, unknown>>> {
  const trimmed = text.trim();
  // Without a space it cannot be `key: value`; JSON begins with a brace.
  const isPlain = type.plain !== undefined && /^[^\s{]\S*$/.test(trimmed);
  const isKey = isPlain && /^["']?(\w+)["']?[:=]/.exec(trimmed)?.[1] === type.plain;
  if (isKey) throw new DnsProviderError(`the secret file needs a space after "${type.plain}:"`);
  return isPlain && type.plain ? { [type.plain]: trimmed } : mapping(type, trimmed);
}

async function mapping(
  type: Omit<SecretFileType, 'config'>,
  text: string,
): Promise<Readonly<Record<string, unknown>>> {
  if (text === '') return {};
  const value = jsonIn(text) ?? (await yamlIn(text));
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  const orPlain = type.plain === undefined ? '' : `, or a single line with the ${type.plain}`;
  throw new DnsProviderError(`the secret file must be a mapping of names to values${orPlain}`);
}

/** Input from HTTP is JSON and never reaches the YAML parser, whose run time is quadratic in the number of keys. */
function jsonIn(text: string): unknown {
  if (!text.startsWith('{')) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // YAML may begin with a brace too, and its parser reports the line of an error.
    return undefined;
  }
}

async function yamlIn(text: string): Promise<unknown> {
  const { parseDocument } = await import('yaml');
  // Its warnings and error messages would quote the text.
  const document = parseDocument(text, { prettyErrors: true, logLevel: 'error' });
  const [error] = document.errors;
  if (error !== undefined) {
    const line = error.linePos?.[0].line;
    throw new DnsProviderError(
      `the secret file is neither valid YAML nor JSON: ${error.code} in line ${line ?? '?'}`,
    );
  }
  return aliasesResolved(document);
}

function aliasesResolved(document: { toJS: (options: { maxAliasCount: number }) => unknown }): unknown {
  try {
    return document.toJS({ maxAliasCount: 10 });
  } catch {
    // The message of the parser would quote the text.
    throw new DnsProviderError('the secret file has unresolved YAML aliases, or too many of them');
  }
}

/** The type with its settings validated again by `create`, because stored settings may come from any version. */
function checked<Config>(type: DnsProviderType<Config>): DnsProviderType {
  return { ...type, create: (config, context) => type.create(checkedConfig(type, config), context) };
}

const maxIssues = 20;

function checkedConfig<Config>(
  { type, config }: Pick<DnsProviderType<Config>, 'type' | 'config'>,
  value: unknown,
): Config {
  const parsed = config.safeParse(value);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.flatMap((issue) => issuesOf(issue));
  const more = issues.length > maxIssues ? `; and ${issues.length - maxIssues} more` : '';
  const settings = issues.slice(0, maxIssues);
  const shown = settings.map(({ path, message }) => `${path} ${message}`.trimStart()).join('; ');
  throw new DnsProviderError(`invalid settings for ${type}: ${shown}${more}`, { settings });
}

function issuesOf(issue: z.core.$ZodIssue): InputError[] {
  const path = issue.path.map(String).map(shownKey).join('.');
  if (issue.code === 'unrecognized_keys') {
    const inside = path === '' ? '' : `${path}.`;
    return issue.keys.map((key) => ({ path: `${inside}${shownKey(key)}`, message: 'is unknown' }));
  }
  return [{ path, message: describeIssue(issue) }];
}

/** A value that was written in place of a key must not be shown. */
function shownKey(key: string): string {
  return /^[A-Za-z][A-Za-z_-]{0,30}$/.test(key) ? key : 'a key that is not a name';
}
