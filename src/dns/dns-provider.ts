/** Interface of DNS providers: they create and remove TXT records in a zone. */
import type { z } from 'zod';
import type { Log } from '../base/log.ts';
import { OperatorError } from '../base/operator-error.ts';
import type { InputError } from '../base/problem.ts';
import type { World } from '../base/world.ts';
import type { OutboundGuard } from '../net/outbound-guard.ts';
import type { Outbound } from '../net/outbound-http.ts';
import type { DnsResolver } from './resolver/dns-resolver.ts';

/** One TXT record of a validation. Names are in lower case, without a trailing dot. */
export type TxtRecord = {
  /** The name of the record, with CNAMEs resolved: `_acme-challenge.www.example.com`. */
  readonly name: string;
  /** The single string of the record. */
  readonly value: string;
  /** The configured zone of the provider; `name` is in this zone. */
  readonly zone: string;
  /** The validated identifier, without `*.`; hooks receive it. */
  readonly domain: string;
};

/**
 * Both operations are idempotent: creating an existing record and removing a missing one succeed. Other values at the
 * same name are preserved. Errors are DnsProviderErrors with a sentence for people. Operations on one name never
 * overlap; those on different names may, up to `concurrency`.
 */
export type DnsProvider = {
  readonly present: (record: TxtRecord, signal: AbortSignal) => Promise<void>;
  readonly remove: (record: TxtRecord, signal: AbortSignal) => Promise<void>;
  /** The same for several records, with fewer requests. Batches of one provider never overlap. */
  readonly batch?: {
    readonly present: (records: readonly TxtRecord[], signal: AbortSignal) => Promise<void>;
    readonly remove: (records: readonly TxtRecord[], signal: AbortSignal) => Promise<void>;
  };
  /**
   * Waits until the provider reports that its own servers have the records, if it reports that. Called after `present`,
   * concurrently with other operations. Throws only if aborted: other failures are left to the propagation check.
   */
  readonly settle?: (records: readonly TxtRecord[], signal: AbortSignal) => Promise<void>;
  /** Whether each operation has its own time limit; otherwise the limit is two minutes. */
  readonly limitsItself?: boolean;
  /** The files of this machine that run as code when records change. */
  readonly programs?: readonly string[];
  /** How many names can be changed at once; default 4. */
  readonly concurrency?: number;
  /** A person has to create the record: the log or the error says which, and visibility can take hours. */
  readonly byHand?: boolean;
};

export type DnsContext = {
  readonly world: World;
  readonly outbound: Outbound;
  readonly guard: OutboundGuard;
  readonly resolver: DnsResolver;
  readonly log: Log;
};

/** A type of DNS provider: the content of its secret file, and how to create a provider from it. */
export type DnsProviderType<Config = unknown> = {
  /** The value of `--type`. */
  readonly type: string;
  /** A few words for the help text. */
  readonly title: string;
  /** The mapping in the secret file (YAML or JSON). Strict: unknown settings are rejected by name. */
  readonly config: z.ZodType<Config>;
  /** The setting that a secret file with a single line of text provides, such as `api_token`. */
  readonly plain?: string;
  readonly create: (config: Config, context: DnsContext) => DnsProvider;
};

/**
 * Why an operation of a provider failed. The message is for people: it may quote the provider, but contains no secrets.
 */
export class DnsProviderError extends OperatorError {
  /** Milliseconds to wait, from the Retry-After header of the provider. */
  readonly retryAfterMs: number | undefined;
  /** The rejected settings by path, such as `files.chain`; the path is empty for all of them together. */
  readonly settings: readonly InputError[];

  constructor(
    message: string,
    options: {
      readonly retryAfterMs?: number | undefined;
      readonly settings?: readonly InputError[];
      readonly cause?: unknown;
    } = {},
  ) {
    const { settings = [], retryAfterMs, cause } = options;
    // As the API names them.
    const errors = settings.map(({ path, message: what }) => ({
      path: path === '' ? 'config' : `config.${path}`,
      message: what,
    }));
    super(message, { cause, errors });
    this.name = 'DnsProviderError';
    this.retryAfterMs = retryAfterMs;
    this.settings = settings;
  }
}
