/** Messages between the event loop and the writing thread. Errors and Buffers survive serialization. */
import type { KeyObject } from 'node:crypto';
import { StorageError } from '../../base/storage-error.ts';
import type { NewAuditEvent } from '../audit/audit-insertion.ts';
import type { LogEnd } from '../audit/audit-mark.ts';
import type { StatementResult } from './sqlite-statements.ts';

/** A request to the thread. Requests are handled in order, except that events wait for the end of a transaction. */
export type WriteOrder =
  | { readonly do: 'open'; readonly path: string }
  | { readonly do: 'begin' | 'commit' | 'rollback' | 'probe' | 'checkpoint' | 'close' }
  | { readonly do: 'execute'; readonly sql: string; readonly values: readonly unknown[] }
  | { readonly do: 'tag'; readonly secret: KeyObject }
  | {
      readonly do: 'append';
      readonly count: number;
      readonly events: EventsText;
      /** An event that the audit log must contain. */
      readonly known: PackedEnd | undefined;
    };

export type WriteRequest = WriteOrder & { readonly id: number };

export type WriteAnswer = { readonly id: number } & (
  | { readonly result: StatementResult | boolean | PackedEnd | undefined }
  | { readonly failure: Failure }
);

/** The error that ends the thread and the process. */
export type LastWord = { readonly fatal: Failure };

/** A serialized error; structured cloning would lose its class and fields. */
export type Failure = {
  readonly message: string;
  readonly isStorageError: boolean;
  readonly stack?: string | undefined;
  readonly code?: string | undefined;
  readonly hint?: string | undefined;
  readonly cause?: Failure | undefined;
};

/** The end of the audit log as it is sent; a Buffer would arrive as a Uint8Array. */
export type PackedEnd = Omit<LogEnd, 'link'> & { readonly hash: string };

export function packEnd({ id, link, lost }: LogEnd): PackedEnd {
  return { id, hash: link.toString('hex'), lost };
}

export function unpackEnd({ id, hash, lost }: PackedEnd): LogEnd {
  return { id, link: Buffer.from(hash, 'hex'), lost };
}

/** Audit events as JSON, which is copied to another thread faster than objects. */
export type EventsText = string & { readonly text: 'events' };

export function packEvents(events: readonly NewAuditEvent[]): EventsText {
  return JSON.stringify(events) as EventsText;
}

export function unpackEvents(text: EventsText): NewAuditEvent[] {
  return JSON.parse(text);
}

/** Values of a statement as they are sent: a small Buffer is part of a pool that would be copied as a whole. */
export function packValues(values: readonly unknown[]): readonly unknown[] {
  return values.map((value) => (Buffer.isBuffer(value) ? new Uint8Array(value) : value));
}

/** Converts bytes in a received result back to Buffers. */
export function unpackResult(result: StatementResult): StatementResult {
  for (const row of result.rows as Record<string, unknown>[]) {
    for (const [column, value] of Object.entries(row)) {
      if (value instanceof Uint8Array) {
        row[column] = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
      }
    }
  }
  return result;
}

/** Serializes an error. */
export function packError(error: unknown): Failure {
  if (!(error instanceof Error)) return { message: String(error), isStorageError: false };
  const { code, hint } = error as { code?: unknown; hint?: unknown };
  return {
    message: error.message,
    isStorageError: error instanceof StorageError,
    stack: error.stack,
    code: typeof code === 'string' ? code : undefined,
    hint: typeof hint === 'string' ? hint : undefined,
    cause: error.cause === undefined ? undefined : packError(error.cause),
  };
}

/** Restores the error. */
export function unpackError({ message, isStorageError, stack, code, hint, cause }: Failure): Error {
  const options = cause === undefined ? {} : { cause: unpackError(cause) };
  const error = isStorageError
    ? new StorageError(message, { ...options, ...(hint !== undefined && { hint }) })
    : new Error(message, options);
  if (stack !== undefined) error.stack = stack;
  return code === undefined ? error : Object.assign(error, { code });
}
