/** The process that reads imported files: one request on standard input, one answer on standard output (src/net/bundle-process.ts). */
import { text } from 'node:stream/consumers';
import { bundleAnswer } from '../../crypto/bundle-transfer.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** Answers the one request that stands on standard input. */
export async function answerBundleRequest({ stdin, stdout }: Terminal): Promise<void> {
  stdout.write(bundleAnswer(await text(stdin)));
}
