/** The child process that parses imported files: one request on stdin, one answer on stdout (src/net/bundle-process.ts). */
import { text } from 'node:stream/consumers';
import { bundleAnswer } from '../../crypto/bundle-transfer.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** Answers the request on standard input. */
export async function answerBundleRequest({ stdin, stdout }: Terminal): Promise<void> {
  stdout.write(bundleAnswer(await text(stdin)));
}
