/**
 * What test/architecture-security.test.ts enforces beside the plan of the house: where answers are written, and, of what is
 * secret, who may look at it and who compares it. A new entry needs a reason that convinces a reader.
 */

/** Members by which an answer gets its status and headers. Only these files use them, so that no answer lacks any. */
export const answerMembers = [
  ...['writeHead', 'setHeader', 'setHeaders', 'appendHeader', 'writeEarlyHints', 'writeInformation'],
];

export const answerWriters: readonly { readonly file: string; readonly why: string }[] = [
  { file: 'src/http/reply.ts', why: 'the one place that writes answers' },
  {
    file: 'src/http/unreadable-request.ts',
    why: 'answers where Node has made no response to write to, with the headers of reply.ts',
  },
];

/** Headers that no answer has: what lets other sites in, and what tells what serves the vault. */
export const refusedHeaders = /^(access-control-|timing-allow-origin$|server$|x-powered-by$)/i;

/** How the text of an answer begins, or a line of its head. */
export const answerText = /^HTTP\/\d/;
