/** What a channel of notifications is to the vault: a way to tell somebody outside what has happened. */
import type { z } from 'zod';
import { OperatorError } from '../base/operator-error.ts';
import type { World } from '../base/world.ts';
import type { OutboundGuard } from '../net/outbound-guard.ts';
import type { Outbound } from '../net/outbound-http.ts';

/** What is told. Programs get it as JSON, people its subject and text. */
export type Message = {
  /** The same at each attempt, so that a receiver knows what it has seen already. */
  readonly id: string;
  /** `renewal.failed`, `test` … */
  readonly type: string;
  /** When it happened: RFC 3339. */
  readonly timestamp: string;
  /** One line. */
  readonly subject: string;
  /** Plain text with lines of at most 78 characters where its words allow it. */
  readonly text: string;
  /** The facts, by the type. */
  readonly data: Readonly<Record<string, unknown>>;
};

export type Channel = {
  /**
   * Resolves when the receiver has taken the message, with what people should know of that nevertheless, such as who of
   * several does not get it. Throws ChannelError.
   */
  readonly send: (message: Message, signal: AbortSignal) => Promise<string | undefined>;
};

export type ChannelContext = {
  readonly world: World;
  readonly outbound: Outbound;
  readonly guard: OutboundGuard;
};

/** A kind of channel: what it must know, and how one is made from that. */
export type ChannelType<Config = unknown> = {
  readonly type: 'webhook' | 'email' | 'exec';
  /** In a few words, for the usage. */
  readonly title: string;
  /** Settings and credentials. Strict: what is not known is refused by name. */
  readonly config: z.ZodType<Config>;
  /** The key that a secret file with nothing but one line of text stands for, such as `password`. */
  readonly plain?: string;
  /** Where it leads, for lists: nothing in it is secret. */
  readonly target: (config: Config) => string;
  /** People read it: what waits for it comes as one message. */
  readonly gathers?: true;
  /** How long an attempt may take, in milliseconds. */
  readonly patience: (config: Config) => number;
  /** The longest that it can be. */
  readonly longestPatience: number;
  readonly create: (config: Config, context: ChannelContext) => Channel;
};

/** Why a message was not taken. The words are for people and hold no secret. */
export class ChannelError extends OperatorError {
  /** Milliseconds that the receiver asked to wait. */
  readonly retryAfterMs: number | undefined;
  /** The receiver wants nothing any more (410 Gone). */
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
