/**
 * Routes as data: the table provides their registration, the 405 with Allow, the checks of rights and input, and the
 * OpenAPI document. `access` is required: a route without it does not compile.
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
  /** Everyone, without credentials. */
  | { readonly kind: 'public' }
  /** An API key with the scope whose allowlist contains the `{name}` of the path; or an administrator's session. */
  | { readonly kind: 'scope'; readonly scope: Scope }
  /** Any API key or administrator's session that is valid. */
  | { readonly kind: 'authenticated' }
  /** An administrator's session. */
  | { readonly kind: 'administrator' }
  /**
   * Like `administrator`, for routes about the session itself: without a session the response is 401 and does not
   * mention administrators.
   */
  | { readonly kind: 'session' }
  /** The metrics token, if one is set; it grants nothing else. */
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

/** A success response, for the API document. */
export type DeclaredReply = {
  readonly description: string;
  readonly headers?: readonly string[];
} & (
  | { readonly schema: z.ZodType; readonly contentType?: 'application/json' }
  | { readonly contentType: PlainType | readonly PlainType[] }
  | { readonly contentType: 'none' }
);

/** What a handler receives of a request. */
export type Call<Query = unknown, Body = unknown> = {
  readonly context: ServerContext;
  readonly identity: Identity | undefined;
  readonly actor: Actor;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  /** The parsed body; undefined if the route has no `body`. */
  readonly body: Body;
  /** The path of the request target, for `Location` and `Link`. */
  readonly path: string;
  /** The base of URLs for this client, without a trailing slash. */
  readonly baseUrl: string;
  readonly ifNoneMatch: string | undefined;
  readonly userAgent: string | undefined;
  /** The response is sent without its body. */
  readonly isHead: boolean;
  /** Aborted when the connection is closed; for long-running work. */
  readonly gone: () => AbortSignal;
};

export type Route = {
  readonly method: Method;
  /** With `{parameters}`, as in OpenAPI. */
  readonly path: string;
  readonly id: string;
  readonly summary: string;
  readonly access: Access;
  readonly query?: z.ZodType;
  /** The schema of the JSON body, which is read after authorization. */
  readonly body?: z.ZodType;
  /** The maximum size of a body in bytes, if not 1 MiB. */
  readonly bodyLimit?: number;
  readonly replies: Readonly<Record<number, DeclaredReply>>;
  /** Its own problems; those of its access and input are added. */
  readonly problems: readonly ProblemCode[];
  readonly handle: (call: Call) => Reply | Promise<Reply>;
};

/** A route whose handler has typed query and body. */
export function route<Query = unknown, Body = unknown>(
  definition: Omit<Route, 'handle' | 'query' | 'body'> & {
    readonly query?: z.ZodType<Query>;
    readonly body?: z.ZodType<Body>;
    readonly handle: (call: Call<Query, Body>) => Reply | Promise<Reply>;
  },
): Route {
  return definition as Route;
}
