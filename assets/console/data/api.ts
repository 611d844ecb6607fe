/** Client of the vault's HTTP API: JSON in and out, problems as ApiError, and one place that handles a lost session. */
import { sessionLost } from './session.ts';

/** A failed request, with the problem details that the vault returned. */
export class ApiError extends Error {
  /** 0 if the vault could not be reached. */
  readonly status: number;
  readonly code: string;
  /** Messages by path, such as `domains.0`. */
  readonly fields: Readonly<Record<string, string>>;
  /** Seconds from the Retry-After header, if any. */
  readonly retryAfter: number | undefined;

  constructor(
    status: number,
    code: string,
    detail: string,
    fields: Readonly<Record<string, string>> = {},
    retryAfter?: number,
  ) {
    super(detail);
    this.status = status;
    this.code = code;
    this.fields = fields;
    this.retryAfter = retryAfter;
  }

  /** The messages for a field and anything in it; see `messagesAt`. */
  field(name: string): string | undefined {
    return messagesAt(this.fields, name);
  }
}

type Messages = Readonly<Record<string, string>>;

/** The paths of a field and of anything in it: `domains` also has `domains.0`. */
export function pathsAt(messages: Messages, field: string): string[] {
  return Object.keys(messages).filter((path) => path === field || path.startsWith(`${field}.`));
}

/** The messages at these paths, a line each. */
export function messagesAt(messages: Messages, field: string): string | undefined {
  const found = new Set(pathsAt(messages, field).map((path) => messages[path]));
  return found.size === 0 ? undefined : [...found].join('\n');
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Sends a request to `/api/v1` plus `path`, which begins with a slash. Throws ApiError. */
export async function call<T>(method: Method, path: string, body?: unknown): Promise<T> {
  const response = await request(method, `/api/v1${path}`, body);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

export const get = <T>(path: string): Promise<T> => call<T>('GET', path);
export const post = <T>(path: string, body: unknown = {}): Promise<T> => call<T>('POST', path, body);
export const put = <T>(path: string, body: unknown): Promise<T> => call<T>('PUT', path, body);
export const patch = <T>(path: string, body: unknown): Promise<T> => call<T>('PATCH', path, body);
export const remove = (path: string): Promise<void> => call<void>('DELETE', path);

/** Reads without a response yet, and their paths. */
const reads = new Map<Promise<unknown>, string>();

/** Something that goes away: reads of it wait until it did, or until it stays. */
type Ending = { readonly concerns: (path: string) => boolean; readonly stays: Promise<void> };

const endings = new Set<Ending>();

/** How long a read may delay an end, in milliseconds. */
const longestDelay = 5000;

/**
 * Ends the session, so that no read of the page is rejected: those that were sent are answered first, and later ones
 * stay unanswered, because the page goes away. Throws ApiError, and lets them go on then.
 */
export function endSession(): Promise<void> {
  return end(
    () => true,
    () => remove('/session'),
  );
}

/**
 * Deletes what the page shows, and leaves the page by `leave`. Live updates meanwhile do not read what is gone, and do
 * not show an error. Throws ApiError, and lets reads go on then.
 */
export function removeShown(path: string, query: string, leave: () => Promise<void> | void): Promise<void> {
  const shown = `/api/v1${path}`;
  return end(
    (read) => read === shown || read.startsWith(`${shown}/`) || read.startsWith(`${shown}?`),
    async () => {
      await remove(path + query);
      await leave();
    },
  );
}

async function end(concerns: Ending['concerns'], act: () => Promise<void>): Promise<void> {
  let goOn = () => {
    // Replaced immediately.
  };
  const stays = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const ending = { concerns, stays };
  endings.add(ending);
  try {
    const late = new Promise((resolve) => setTimeout(resolve, longestDelay));
    const sent = [...reads].filter(([, path]) => concerns(path)).map(([read]) => read);
    await Promise.race([Promise.allSettled(sent), late]);
    await act();
  } catch (error) {
    goOn();
    throw error;
  } finally {
    endings.delete(ending);
  }
}

/** The bytes of a file, requested with these headers. Throws ApiError. */
export async function fetchFile(path: string, headers: Readonly<Record<string, string>>): Promise<Blob> {
  return (await request('GET', `/api/v1${path}`, undefined, headers)).blob();
}

/** A whole list, all its pages. */
export async function getAll<T>(path: string): Promise<T[]> {
  const items: T[] = [];
  let next: string | undefined = `/api/v1${path}`;
  while (next !== undefined) {
    const response: Response = await request('GET', next);
    items.push(...((await response.json()) as T[]));
    next = nextPage(response.headers.get('Link'));
  }
  return items;
}

/** One page of a list, and the path of the next page. */
export async function getPage<T>(path: string): Promise<{ items: T[]; next: string | undefined }> {
  const response = await request('GET', `/api/v1${path}`);
  const next = nextPage(response.headers.get('Link'));
  return { items: (await response.json()) as T[], next: next?.replace(/^.*?\/api\/v1/, '') };
}

/** Path and query of the next page. Drops the origin, which may be another name of the vault. */
function nextPage(link: string | null): string | undefined {
  const target = /<([^<>]+)>;\s*rel="next"/.exec(link ?? '')?.[1];
  if (target === undefined) return undefined;
  const { pathname, search } = new URL(target, location.origin);
  return pathname + search;
}

async function request(
  method: Method,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = { Accept: 'application/json' },
): Promise<Response> {
  const init: RequestInit = { method, headers };
  if (body !== undefined) {
    init.headers = { ...headers, 'Content-Type': 'application/json' };
    init.body = JSON.stringify(body);
  }
  const response = await send(path, init).catch(() => {
    throw new ApiError(
      0,
      'unreachable',
      'Cannot reach the vault. It may be restarting, or the network may be down.',
    );
  });
  if (response.ok) return response;
  const error = await errorOf(response);
  const isSignIn = method === 'POST' && /\/(session|setup|second-step|passkey)$/.test(path);
  if (!isSignIn && (await isSignedOut(error, path))) sessionLost();
  throw error;
}

async function send(path: string, init: RequestInit): Promise<Response> {
  if (init.method !== 'GET') return fetch(path, init);
  for (const ending of endings) if (ending.concerns(path)) await ending.stays;
  const read = fetch(path, init);
  reads.set(read, path);
  try {
    return await read;
  } finally {
    reads.delete(read);
  }
}

/** Administrator endpoints answer 403 to a request without a session, so a 403 needs a second check. */
async function isSignedOut({ status }: ApiError, path: string): Promise<boolean> {
  if (status === 401) return true;
  if (status !== 403 || path === '/api/v1/session') return false;
  const response = await fetch('/api/v1/session').catch(() => undefined);
  return response?.status === 401;
}

type ProblemBody = {
  readonly code?: string;
  readonly detail?: string;
  readonly errors?: readonly { readonly path: string; readonly message: string }[];
};

async function errorOf(response: Response): Promise<ApiError> {
  const problem = (await response.json().catch(() => ({}))) as ProblemBody;
  const {
    code = 'unknown',
    detail = `The vault responded with status ${response.status}.`,
    errors = [],
  } = problem;
  const fields = Object.fromEntries(errors.map(({ path, message }) => [path, message]));
  const seconds = Number(response.headers.get('Retry-After') ?? Number.NaN);
  return new ApiError(response.status, code, detail, fields, Number.isFinite(seconds) ? seconds : undefined);
}
