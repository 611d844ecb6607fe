/**
 * The child processes that parse files of others: one request on stdin, one answer on stdout
 * (src/net/bundle-process.ts).
 */
import { text } from 'node:stream/consumers';
import { bundleAnswer } from '../../crypto/bundles/bundle-transfer.ts';
import { inspectionAnswer } from '../../crypto/bundles/inspection-transfer.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** Answers the request on standard input. */
export async function answerBundleRequest({ stdin, stdout }: Terminal): Promise<void> {
  stdout.write(bundleAnswer(await text(stdin)));
}

/** Answers the request to inspect a file on standard input. */
export async function answerInspectionRequest({ stdin, stdout }: Terminal): Promise<void> {
  stdout.write(await inspectionAnswer(await text(stdin)));
}
