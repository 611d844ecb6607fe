/** Records a response of the vault, so that the bare server can send the same bytes. */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { LoadRequest } from './load.ts';

export type Answer = {
  readonly status: number;
  /** The headers that node:http does not add itself. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

const addedByNode = ['date', 'connection', 'keep-alive', 'transfer-encoding'];

/** Sends one request. Does not verify the certificate, because the server is our own. */
export function answerTo(url: string, { path, headers }: LoadRequest): Promise<Answer> {
  const send = url.startsWith('https:') ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const request = send(
      `${url}${path}`,
      { headers, rejectUnauthorized: false, agent: false },
      (response) => {
        let body = '';
        response.setEncoding('utf8');
        response.on('error', reject);
        response.on('data', (chunk: string) => {
          body += chunk;
        });
        response.on('end', () => {
          const sent = Object.groupBy(response.rawHeaders, (_, index) =>
            index % 2 === 0 ? 'names' : 'values',
          );
          const pairs = (sent.names ?? []).map((name, index) => [name, sent.values?.[index] ?? ''] as const);
          const own = pairs.filter(([name]) => !addedByNode.includes(name.toLowerCase()));
          resolve({ status: response.statusCode ?? 0, headers: Object.fromEntries(own), body });
        });
      },
    );
    request.on('error', reject);
    request.end();
  });
}
