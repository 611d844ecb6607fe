/** Signs requests to the APIs of Amazon Web Services. */
import { AwsV4Signer } from 'aws4fetch';
import type { OutboundRequest } from './outbound-http.ts';

export type AwsCredentials = {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Of temporary credentials. */
  readonly sessionToken?: string | undefined;
};

export type AwsScope = { readonly region: string; readonly service: string };

/**
 * Signature Version 4, by aws4fetch: headers to send besides the request's own, all of which are signed. `now` in
 * UTC milliseconds. The path is encoded once more, as every AWS service but S3 expects.
 */
export async function sigV4Headers(
  { method, url, headers = {}, body }: Pick<OutboundRequest, 'method' | 'url' | 'headers' | 'body'>,
  { sessionToken, ...credentials }: AwsCredentials,
  scope: AwsScope,
  now: number,
): Promise<Record<string, string>> {
  const { headers: signed } = await new AwsV4Signer({
    ...{ method, url, headers, ...credentials, ...scope, allHeaders: true },
    ...(sessionToken !== undefined && { sessionToken }),
    ...(body !== undefined && { body: typeof body === 'string' ? body : new Uint8Array(body) }),
    datetime: new Date(now).toISOString().replace(/[-:]|\.\d{3}/g, ''),
  }).sign();
  const names = ['X-Amz-Date', 'X-Amz-Security-Token', 'Authorization'];
  return Object.fromEntries(
    names.map((name) => [name, signed.get(name) ?? '']).filter(([, value]) => value !== ''),
  );
}
