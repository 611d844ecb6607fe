/**
 * Serves the console for paths outside the route table: its files are not part of the API, and the page is served for
 * all paths that a browser may open, because the console does its own routing.
 */
import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { noneMatch } from '../request/conditional-request.ts';
import type { WholeReply } from '../request/reply.ts';
import { pagePolicy } from '../request/security-headers.ts';

/** The built files by name: `index.html`, hashed ones, and each also with `.br` and `.gz`. */
export type ConsoleFiles = ReadonlyMap<string, Buffer>;

/** The relevant part of a request; `url` is in origin form. */
export type ConsoleRequest = {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: Pick<IncomingHttpHeaders, 'accept' | 'accept-encoding' | 'if-none-match'>;
};

/** The response of the console, or undefined if it has none. */
export type ConsoleReply = (request: ConsoleRequest) => WholeReply | undefined;

const page = 'index.html';

const types: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};

/** Paths of API clients; a page there would only hide that nothing was found. */
const notForPeople = /^\/(api|client|console|\.well-known)(\/|$)/;

/** Serves these files. Without files it never responds. */
export function consoleReply(files: ConsoleFiles): ConsoleReply {
  const etags = new Map(
    [...files].map(([name, content]) => [name, `"${hash('sha256', content).slice(0, 32)}"`]),
  );
  return ({ method, url = '', headers }) => {
    if (method !== 'GET' && method !== 'HEAD') return undefined;
    const name = fileFor(url.split('?', 1)[0] ?? '', headers.accept);
    const type = types[name?.split('.').at(-1) ?? ''];
    if (name === undefined || type === undefined || !files.has(name)) return undefined;
    const [encoded, encoding] = inEncoding(files, name, headers['accept-encoding']);
    const etag = etags.get(encoded) ?? '';
    const head = {
      'Content-Security-Policy': pagePolicy,
      ETag: etag,
      'Cache-Control': name === page ? 'no-cache' : 'public, max-age=31536000, immutable',
      Vary: 'Accept-Encoding',
    };
    if (noneMatch(headers['if-none-match'], etag)) return { status: 304, headers: head, body: '' };
    const content = { 'Content-Type': type, ...(encoding && { 'Content-Encoding': encoding }) };
    return { status: 200, headers: { ...head, ...content }, body: files.get(encoded) ?? '' };
  };
}

/** The page at `/`, and at other paths if the client accepts HTML, as browsers do and programs do not. */
function fileFor(path: string, accept = ''): string | undefined {
  if (path === '/') return page;
  if (path.startsWith('/console/')) {
    const name = path.slice('/console/'.length);
    return name === page ? undefined : name;
  }
  if (notForPeople.test(path)) return undefined;
  return /(^|,)\s*text\/html\s*(;|,|$)/i.test(accept) ? page : undefined;
}

/** The file in the best available encoding that the client accepts (RFC 9110 §12.5.3). */
function inEncoding(
  files: ConsoleFiles,
  name: string,
  accepted = '',
): [file: string, encoding: string | undefined] {
  for (const [encoding, suffix] of [
    ['br', '.br'],
    ['gzip', '.gz'],
  ] as const) {
    if (takes(accepted, encoding) && files.has(name + suffix)) return [name + suffix, encoding];
  }
  return [name, undefined];
}

function takes(accepted: string, encoding: string): boolean {
  const weights = accepted.split(',').map((element) => {
    const [name = '', ...parameters] = element.split(';').map((part) => part.trim().toLowerCase());
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    return [name, weight === undefined ? 1 : Number(weight)] as const;
  });
  const found = weights.find(([name]) => name === encoding) ?? weights.find(([name]) => name === '*');
  return found !== undefined && found[1] > 0;
}
