/** Interface of deploy targets: places that cannot fetch certificates, so that the vault brings them there. */
import type { z } from 'zod';
import { OperatorError } from '../base/operator-error.ts';
import type { Secret } from '../base/secret.ts';
import type { World } from '../base/world.ts';
import type { OutboundGuard } from '../net/outbound-guard.ts';
import type { Outbound } from '../net/outbound-http.ts';

/** A version of a certificate, as a target gets it. */
export type Material = {
  /** The name of the certificate in the vault. */
  readonly name: string;
  readonly version: number;
  readonly domains: readonly string[];
  /** SHA-256 of the certificate, 64 hexadecimal digits in lower case. */
  readonly fingerprint: string;
  /** RFC 3339. */
  readonly notAfter: string;
  /** PEM: the certificate, the intermediates behind it (empty for none), and both. */
  readonly certificate: string;
  readonly chain: string;
  readonly fullchain: string;
  /** PEM, PKCS#8. */
  readonly privateKey: Secret<string>;
};

/** How an installation ended. */
export type Installed = {
  /** The command or call behind it, such as a reload; undefined without one. */
  readonly reload?: { readonly result: 'ok' | 'failed'; readonly output: string | null };
  /** How the target names what was installed, if it chose that itself; it gets this name again. */
  readonly remoteId?: string;
};

/** All operations throw TargetError, and may be repeated. */
export type Target = {
  /** Installs the certificate. `remoteId` is what the last installation returned. */
  readonly install: (material: Material, remoteId: string | null, signal: AbortSignal) => Promise<Installed>;
  /**
   * Whether this version is still installed; missing if the target cannot be asked. It never transfers the private key.
   */
  readonly isInstalled?: (
    material: Omit<Material, 'privateKey'>,
    remoteId: string | null,
    signal: AbortSignal,
  ) => Promise<boolean>;
};

export type TargetContext = {
  readonly world: World;
  readonly outbound: Outbound;
  readonly guard: OutboundGuard;
};

/** The names of the types, in the order of the help text. */
export type TargetTypeName =
  | 'ssh'
  | 'kubernetes'
  | 'webhook'
  | 'exec'
  | 'proxmox'
  | 'synology'
  | 'fortigate'
  | 'aws-acm'
  | 'azure-key-vault';

/** A type of target: its settings, and how to create a target from them. */
export type TargetType<Config = unknown> = {
  readonly type: TargetTypeName;
  /** A few words for the help text. */
  readonly title: string;
  /** Settings and credentials. Strict: unknown settings are rejected by name. */
  readonly config: z.ZodType<Config>;
  /** The machine or service, for lists: contains no secrets. */
  readonly host: (config: Config) => string;
  /** Where the certificate of this name goes on that host; contains no secrets. */
  readonly destination: (config: Config, certificate: string) => string;
  /** Time limit of one installation, in milliseconds. */
  readonly patience: (config: Config) => number;
  readonly create: (config: Config, context: TargetContext) => Target;
};

/** Why a certificate was not installed. The text is for people and contains no secrets. */
export class TargetError extends OperatorError {
  /** Milliseconds to wait, as requested by the target. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    options: { readonly retryAfterMs?: number | undefined; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'TargetError';
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** The text of a setting with the name of the certificate in place of `{certificate}`. */
export function named(pattern: string, certificate: string): string {
  return pattern.replaceAll('{certificate}', certificate);
}
