/** AWS Signature Version 4, written a second time: what the vault signs with a library is checked by other code. */
import { createHash, createHmac } from 'node:crypto';
import type { OutboundRequest } from '../../../src/net/outbound-http.ts';
import type { FakeRequest } from '../../harness/http/fake-server.ts';

type AwsCredentials = {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Of temporary credentials. */
  readonly sessionToken?: string | undefined;
};

type AwsScope = { readonly region: string; readonly service: string };

/**
 * Headers to be sent besides the request's own, all of which are signed. `now` in milliseconds. The path is taken as
 * AWS takes it everywhere but in S3: encoded once more.
 */
export function awsSignature(
  { method, url, headers = {}, body = '' }: Pick<OutboundRequest, 'method' | 'url' | 'headers' | 'body'>,
  credentials: AwsCredentials,
  { region, service }: AwsScope,
  now: number,
): Record<string, string> {
  const { host, pathname, searchParams } = new URL(url);
  const time = new Date(now).toISOString().replace(/[-:]|\.\d{3}/g, '');
  const day = time.slice(0, 8);
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  const added = {
    'X-Amz-Date': time,
    ...(sessionToken !== undefined && { 'X-Amz-Security-Token': sessionToken }),
  };
  const signed = Object.entries({ ...headers, ...added, Host: host })
    .map(([name, value]) => [name.toLowerCase(), value.trim().replace(/ +/g, ' ')] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const names = signed.map(([name]) => name).join(';');
  const query = [...searchParams]
    .map(([name, value]) => `${percentEncoded(name)}=${percentEncoded(value)}`)
    .sort()
    .join('&');
  const canonical = [
    method,
    pathname.split('/').map(percentEncoded).join('/'),
    query,
    ...signed.map(([name, value]) => `${name}:${value}`),
    '',
    names,
    sha256(body),
  ].join('\n');
  const scope = `${day}/${region}/${service}/aws4_request`;
  const text = ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n');
  const key = [day, region, service, 'aws4_request'].reduce<string | Buffer>(
    (previous, part) => hmac(previous, part),
    `AWS4${secretAccessKey}`,
  );
  const signature = hmac(key, text).toString('hex');
  return {
    ...added,
    Authorization: `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`,
  };
}

/** Whether the request has the signature of these credentials, and its host and session token are signed. */
export function isAwsSigned(
  { method, url, headers, body }: FakeRequest,
  credentials: AwsCredentials,
  scope: AwsScope,
): boolean {
  const authorization = headers.authorization ?? '';
  const names = /SignedHeaders=([^,]*)/.exec(authorization)?.[1]?.split(';') ?? [];
  const own = names.filter((name) => !added.includes(name));
  const time = (headers['x-amz-date'] ?? '').replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5');
  const signed = own.map((name) => [name, headers[name] ?? '']);
  const request = { method: method as 'GET', url, body, headers: Object.fromEntries(signed) };
  const expected = awsSignature(request, credentials, scope, Date.parse(time));
  const hasToken = credentials.sessionToken === undefined || names.includes('x-amz-security-token');
  return authorization === expected.Authorization && names.includes('host') && hasToken;
}

/** The headers that the signature itself adds. */
const added = ['host', 'x-amz-date', 'x-amz-security-token'];

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}

/** All but the unreserved characters of RFC 3986. */
function percentEncoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
