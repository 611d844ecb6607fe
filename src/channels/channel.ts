/** Interface of notification channels: ways to send messages to recipients outside the vault. */
import type { z } from 'zod';
import { OperatorError } from '../base/operator-error.ts';
import type { World } from '../base/world.ts';
import type { OutboundGuard } from '../net/outbound-guard.ts';
import type { Outbound } from '../net/outbound-http.ts';

/** A notification. Programs receive it as JSON, people its subject and text. */
export type Message = {
  /** The same for all attempts, so that a recipient can detect duplicates. */
  readonly id: string;
  /** `renewal.failed`, `test` … */
  readonly type: string;
  /** Time of the event, RFC 3339. */
  readonly timestamp: string;
  /** One line. */
  readonly subject: string;
  /** Plain text with lines of at most 78 characters where possible. */
  readonly text: string;
  /** The facts; their form depends on the type. */
  readonly data: Readonly<Record<string, unknown>>;
};

export type Channel = {
  /**
   * Resolves when the recipient has accepted the message, with a warning if there is one, such as recipients that were
   * rejected. Throws ChannelError.
   */
  readonly send: (message: Message, signal: AbortSignal) => Promise<string | undefined>;
};

export type ChannelContext = {
  readonly world: World;
  readonly outbound: Outbound;
  readonly guard: OutboundGuard;
  /** The address of the console, if the vault knows it. */
  readonly publicUrl?: string | undefined;
  /** Distinguishes the alarms of this channel from those of other vaults with the same recipient. */
  readonly channelKey?: string;
};

/** The names of the types, in the order of the help text. */
export type ChannelTypeName =
  | 'webhook'
  | 'email'
  | 'exec'
  | 'slack'
  | 'teams'
  | 'discord'
  | 'telegram'
  | 'ntfy'
  | 'gotify'
  | 'pagerduty'
  | 'opsgenie';

/** A type of channel: its settings, and how to create a channel from them. */
export type ChannelType<Config = unknown> = {
  readonly type: ChannelTypeName;
  /** A few words for the help text. */
  readonly title: string;
  /** Settings and credentials. Strict: unknown settings are rejected by name. */
  readonly config: z.ZodType<Config>;
  /** The setting that a secret file with a single line of text provides, such as `password`. */
  readonly plain?: string;
  /** The destination, for lists: contains no secrets. */
  readonly target: (config: Config) => string;
  /** The recipient is a person: pending messages are combined into one. */
  readonly gathers?: true;
  /** The recipient keeps alarms open until their recovery arrives. */
  readonly keepsAlarms?: true;
  /** Time limit of one attempt, in milliseconds. */
  readonly patience: (config: Config) => number;
  /** The largest possible time limit. */
  readonly maxPatience: number;
  readonly create: (config: Config, context: ChannelContext) => Channel;
};

/** Why a message was not delivered. The text is for people and contains no secrets. */
export class ChannelError extends OperatorError {
  /** Milliseconds to wait, as requested by the recipient. */
  readonly retryAfterMs: number | undefined;
  /** The recipient accepts no more messages (410 Gone). */
  readonly isGone: boolean;

  constructor(
    message: string,
    options: {
      readonly retryAfterMs?: number | undefined;
      readonly gone?: true;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'ChannelError';
    this.retryAfterMs = options.retryAfterMs;
    this.isGone = options.gone ?? false;
  }
}
