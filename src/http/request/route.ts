/**
 * A route as data: from one table come its registration, the 405 with Allow, the checks of rights and input, and its
 * part of the OpenAPI document. `access` is required: a route without it does not compile.
 */
import type { z } from 'zod';
import type { ProblemCode } from '../../base/problem.ts';
import type { Scope } from '../../base/scope.ts';
import type { Identity } from '../../domain/access/identity.ts';
import type { Actor } from '../../domain/audit/audit.ts';
import type { ServerContext } from '../server/server-context.ts';
import type { Reply } from './reply.ts';

/** Who may call a route. */
export type Access =
  /** Anybody, without credentials. */
  | { readonly kind: 'public' }
  /** An API key with the scope, and a `{name}` in the path in its allowlist; or an administrator's session. */
  | { readonly kind: 'scope'; readonly scope: Scope }
  /** An administrator's session. */
  | { readonly kind: 'administrator' }
  /** The same, about the session itself: whoever has none is told so (401) and not that it takes an administrator. */
  | { readonly kind: 'session' }
  /** The token of metrics, where one is set; it opens nothing else. */
  | { readonly kind: 'metrics' };

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

type PlainType =
  | 'application/x-pem-file'
  | 'application/octet-stream'
  | 'application/jsonl'
  | 'text/x-shellscript'
  | 'text/plain'
  | 'text/csv'
  | 'text/event-stream';

/** One success answer as the API document tells of it. */
export type DeclaredReply = {
  readonly description: string;
  readonly headers?: readonly string[];
} & (
  | { readonly schema: z.ZodType; readonly contentType?: 'application/json' }
  | { readonly contentType: PlainType | readonly PlainType[] }
  | { readonly contentType: 'none' }
);

/** What a handler gets to know of a request. */
export type Call<Query = unknown, Body = unknown> = {
  readonly context: ServerContext;
  readonly identity: Identity | undefined;
  readonly actor: Actor;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  /** What the route's schema made of the JSON that was sent; undefined where the route has no `body`. */
  readonly body: Body;
  /** The request target's path, for `Location` and `Link`. */
  readonly path: string;
  /** What comes before the path in URLs for this caller, without a slash at the end. */
  readonly baseUrl: string;
  readonly ifNoneMatch: string | undefined;
  readonly userAgent: string | undefined;
  /** The answer's body will not be sent. */
  readonly isHead: boolean;
  /** Aborted when the connection is gone; for work that takes long. */
  readonly gone: () => AbortSignal;
};

export type Route = {
  readonly method: Method;
  /** With `{parameters}`, as OpenAPI writes them. */
  readonly path: string;
  readonly id: string;
  readonly summary: string;
  readonly access: Access;
  readonly query?: z.ZodType;
  /** What the JSON in the body must be. It is read after the caller was admitted. */
  readonly body?: z.ZodType;
  /** The most that a body may have, in bytes, where 1 MiB does not fit. */
  readonly bodyLimit?: number;
  readonly replies: Readonly<Record<number, DeclaredReply>>;
  /** Problems of its own; those of its access and input are added. */
  readonly problems: readonly ProblemCode[];
  readonly handle: (call: Call) => Reply | Promise<Reply>;
};

/** A route whose handler knows the types of the checked query and body. */
export function route<Query = unknown, Body = unknown>(
  definition: Omit<Route, 'handle' | 'query' | 'body'> & {
    readonly query?: z.ZodType<Query>;
    readonly body?: z.ZodType<Body>;
    readonly handle: (call: Call<Query, Body>) => Reply | Promise<Reply>;
  },
): Route {
  return definition as Route;
}
