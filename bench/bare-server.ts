/**
 * The baseline for the vault: a minimal node:http server that sends the same bytes. It answers every request with the
 * response in the file of its first argument, over HTTPS if the next two arguments name a certificate and its key.
 */
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Answer } from './answer.ts';

const [, , answerFile = '', certFile, keyFile] = process.argv;
const { status, headers, body } = JSON.parse(readFileSync(answerFile, 'utf8')) as Answer;
const bytes = Buffer.from(body);

const listener: RequestListener = (_, response) => {
  response.writeHead(status, headers);
  response.end(bytes);
};
const server =
  certFile === undefined || keyFile === undefined
    ? createServer(listener)
    : createHttpsServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, listener);
server.keepAliveTimeout = 75_000;
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  console.log(`listening on ${certFile === undefined ? 'http' : 'https'}://127.0.0.1:${port}`);
});
