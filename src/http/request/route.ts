/**
 * Routes as data: the table provides their registration, the 405 with Allow, the checks of rights and input, and the
 * OpenAPI document. `access` is required: a route without it does not compile.
 */
import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import type { ProblemCode } from '../../base/problem.ts';
import type { Scope } from '../../base/scope.ts';
import type { Identity } from '../../domain/access/identity.ts';
import type { Actor } from '../../domain/audit/audit.ts';
import type { Reply, WholeReply } from './reply.ts';
import type { ServerContext } from './server-context.ts';

/** Who may call a route. */
export type Access =
  /** Everyone, without credentials. */
  | { readonly kind: 'public' }
  /** An API key with the scope whose allowlist contains the `{name}` of the path; or an administrator's session. */
  | {
      readonly kind: 'scope';
      readonly scope: Scope;
      /** Another scope that suffices. */
      readonly orScope?: Scope;
    }
  /** Any API key or administrator's session that is valid. */
  | { readonly kind: 'authenticated' }
  /** An administrator's session or an API key with a role, if the role suffices (auth/operation-roles.ts). */
  | {
      readonly kind: 'administrator';
      /** Whether it is about the session or the person, so that it takes no key. */
      readonly isPersonal?: true;
      /** Whether it is open to people who must set up a second factor first (auth/enrolment.ts). */
      readonly isEnrolment?: true;
    }
  /**
   * Like `administrator`, for routes about the session itself: without a session the response is 401 and does not
   * mention administrators.
   */
  | { readonly kind: 'session' }
  /** The metrics token, if one is set; it grants nothing else. */
  | { readonly kind: 'metrics' };

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export type PlainType =
  | 'application/x-pem-file'
  | 'application/pkix-crl'
  | 'application/octet-stream'
  | 'application/pkcs12'
  | 'application/pkix-cert'
  | 'application/x-tar'
  | 'application/jsonl'
  | 'text/x-shellscript'
  | 'text/plain'
  | 'text/csv'
  | 'text/event-stream'
  | 'application/pem-certificate-chain';

/** A success response, for the API document. */
export type DeclaredReply = {
  readonly description: string;
  readonly headers?: readonly string[];
} & (
  | { readonly schema: z.ZodType; readonly contentType?: 'application/json' }
  | { readonly contentType: PlainType | readonly PlainType[] }
  | { readonly contentType: 'none' }
);

/** A header that a route reads, for the API document. */
export type RequestHeader = {
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
};

/** Where a request of another protocol arrived. */
export type ProtocolPlace = {
  readonly context: ServerContext;
  readonly request: IncomingMessage;
  readonly params: Readonly<Record<string, string>>;
};

/** How the routes of another protocol read bodies and answer, in place of the way of the API. */
export type Protocol = {
  /** The only type of content that it takes. */
  readonly bodyType: string;
  readonly readBody: (request: IncomingMessage) => Promise<unknown>;
  /** The answer to an error that a client may see; undefined for any other. */
  readonly problemReply: (error: unknown, place: ProtocolPlace) => WholeReply | undefined;
  /** Adds what each answer has. */
  readonly complete: (reply: WholeReply, place: ProtocolPlace) => WholeReply;
  /** Its problems by status, for the API document. */
  readonly failures: Readonly<Record<number, DeclaredFailure>>;
  readonly problemSchema: z.ZodType;
};

export type DeclaredFailure = { readonly description: string; readonly headers: readonly string[] };

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
  /** The request target: path and query. */
  readonly target: string;
  /** The base of URLs for this client, without a trailing slash. */
  readonly baseUrl: string;
  readonly ifNoneMatch: string | undefined;
  readonly userAgent: string | undefined;
  /** The values of all lines of a header, by its name in lower case; Node decodes them as Latin-1. */
  readonly headerLines: (name: string) => readonly string[];
  /** The response is sent without its body. */
  readonly isHead: boolean;
  /** Aborted when the connection is closed; for long-running work. */
  readonly gone: () => AbortSignal;
  /** Names the actor in the log, where the body says who it is. */
  readonly nameActor: (name: string) => void;
};

export type Route = {
  readonly method: Method;
  /** With `{parameters}`, as in OpenAPI. */
  readonly path: string;
  readonly id: string;
  readonly summary: string;
  readonly access: Access;
  readonly query?: z.ZodType;
  /** Headers that the route reads, besides those of credentials and conditions. */
  readonly requestHeaders?: readonly RequestHeader[];
  /** The schema of the JSON body, which is read after authorization. */
  readonly body?: z.ZodType;
  /** Other types of content that the route takes in place of JSON, and the JSON value that each stands for. */
  readonly bodyTypes?: Readonly<Record<string, (bytes: Buffer) => unknown>>;
  /** Of another protocol than the API; all routes of a path have the same. */
  readonly protocol?: Protocol;
  /** The maximum size of a body in bytes, if not 64 KiB. */
  readonly bodyLimit?: number;
  readonly replies: Readonly<Record<number, DeclaredReply>>;
  /** Its own problems; those of its access and input are added. */
  readonly problems: readonly ProblemCode[];
  /**
   * What the call changes, in a sentence for people, if that needs the approval of a second administrator where the
   * settings ask for one. Throws the problem of a call that cannot succeed.
   */
  readonly approval?: (call: Call) => string | undefined | Promise<string | undefined>;
  readonly handle: (call: Call) => Reply | Promise<Reply>;
};

/** A route whose handler has typed query and body. */
export function route<Query = unknown, Body = unknown>(
  definition: Omit<Route, 'handle' | 'approval' | 'query' | 'body'> & {
    readonly query?: z.ZodType<Query>;
    readonly body?: z.ZodType<Body>;
    readonly approval?: (call: Call<Query, Body>) => string | undefined | Promise<string | undefined>;
    readonly handle: (call: Call<Query, Body>) => Reply | Promise<Reply>;
  },
): Route {
  return definition as Route;
}
