/** What a DNS provider is to the vault: somebody who puts a TXT record into a zone and takes it out again. */
import type { z } from 'zod';
import type { Log } from '../base/log.ts';
import { OperatorError } from '../base/operator-error.ts';
import type { World } from '../base/world.ts';
import type { OutboundGuard } from '../net/outbound-guard.ts';
import type { Outbound } from '../net/outbound-http.ts';
import type { DnsResolver } from './resolver/dns-resolver.ts';

/** One TXT record of a validation. Names are in lower case, without a dot at the end. */
export type TxtRecord = {
  /** Where the record stands, after CNAMEs were followed: `_acme-challenge.www.example.com`. */
  readonly name: string;
  /** The one string it holds. */
  readonly value: string;
  /** The zone that the provider was configured with and that `name` is in or under. */
  readonly zone: string;
  /** The identifier that is validated, without `*.`; hooks want to know it. */
  readonly domain: string;
};

/**
 * Both operations are idempotent: putting a record that is there, and removing one that is not, succeed. Other values at
 * the same name are left alone. They throw DnsProviderError with a sentence for people. Operations on one name never
 * overlap; those on different names may, as `concurrency` says.
 */
export type DnsProvider = {
  readonly present: (record: TxtRecord, signal: AbortSignal) => Promise<void>;
  readonly remove: (record: TxtRecord, signal: AbortSignal) => Promise<void>;
  /** The same for several records, with fewer requests. Such changes of one provider never overlap. */
  readonly batch?: {
    readonly present: (records: readonly TxtRecord[], signal: AbortSignal) => Promise<void>;
    readonly remove: (records: readonly TxtRecord[], signal: AbortSignal) => Promise<void>;
  };
  /**
   * Waits until the provider says that its own servers show the records, where it says so. Called after `present`, beside
   * other operations. What cannot be found out is left to the look at the DNS itself: it throws only where it was aborted.
   */
  readonly settle?: (records: readonly TxtRecord[], signal: AbortSignal) => Promise<void>;
  /** Whether each operation ends by itself in good time; else it is ended after two minutes. */
  readonly limitsItself?: boolean;
  /** How many names may be changed at once; 4 where undefined. */
  readonly concurrency?: number;
  /** A person has to make the record: what they must do is in the error or log, and visibility takes as long as they do. */
  readonly byHand?: boolean;
};

export type DnsContext = {
  readonly world: World;
  readonly outbound: Outbound;
  readonly guard: OutboundGuard;
  readonly resolver: DnsResolver;
  readonly log: Log;
};

/** A kind of provider: what its secret file must hold, and how one is made from that. */
export type DnsProviderType<Config = unknown> = {
  /** As `--type` names it. */
  readonly type: string;
  /** In a few words, for the usage. */
  readonly title: string;
  /** The mapping in the secret file (YAML or JSON). Strict: what is not known is refused by name. */
  readonly config: z.ZodType<Config>;
  /** The key that a secret file with nothing but one line of text stands for, such as `api_token`. */
  readonly plain?: string;
  readonly create: (config: Config, context: DnsContext) => DnsProvider;
};

/** Why a provider did not do it. The message is for people: it has the provider's own words, and no secret. */
export class DnsProviderError extends OperatorError {
  /** Milliseconds that the provider asked to wait, from its Retry-After. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    options: { readonly retryAfterMs?: number | undefined; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'DnsProviderError';
    this.retryAfterMs = options.retryAfterMs;
  }
}
