/** A fake of Cloudflare's API v4, limited to TXT records. Like the real API it returns contents in quotes. */
import { cloudflare } from '../../../src/dns/providers/cloudflare.ts';
import { unquoteTxt } from '../../../src/dns/resolver/txt-string.ts';
import type { FakeApi, FakeProvider } from '../../harness/dns/fake-provider.ts';
import type { FakeReply, FakeRequest } from '../../harness/http/fake-server.ts';

const token = 'cf-token/with+signs-4711';

const error = (status: number, message: string, code = 1000): FakeReply => ({
  status,
  json: { success: false, errors: [{ code, message }], messages: [], result: null },
});

export const fakeCloudflare: FakeApi<{ api_token: string; base_url?: string | undefined }> = {
  type: cloudflare,
  origin: 'https://api.cloudflare.com',
  config: (url) => ({ api_token: token, base_url: `${url}/client/v4` }),
  wrong: (url) => ({ api_token: 'cf-wrong-0815', base_url: `${url}/client/v4/` }),
  secrets: [token, 'cf-wrong-0815'],
  error,
  strange: { status: 200, json: { success: true, result: 7 } },
  handler: (fake) => (request) => {
    const { method, path, body } = request;
    if (request.headers.authorization !== `Bearer ${token}`) return error(403, 'Invalid access token', 9109);
    if (path === '/client/v4/zones' && method === 'GET') {
      const named = fake.publicZones.filter((name) => name === request.query.get('name'));
      const moved = named.flatMap((name) => [
        { id: 'moved-away', name, status: 'moved' },
        { id: 'too', name, status: 'pending' },
        { id: `id-${name}`, name, status: 'active' },
      ]);
      return listed(fake, request, moved);
    }
    const [, zoneId, id] = /^\/client\/v4\/zones\/id-([^/]+)\/dns_records(?:\/(\w+))?$/.exec(path) ?? [];
    if (zoneId === undefined || !fake.publicZones.includes(zoneId)) return undefined;
    if (method === 'GET') {
      const name = request.query.get('name');
      const found = fake.seen().filter((record) => record.name === name);
      const shown = found.map((record) => ({ ...record, content: `"${record.value}"`, type: 'TXT' }));
      return listed(fake, request, shown);
    }
    fake.writing();
    if (method === 'DELETE') {
      if (!fake.remove((record) => record.id === id)) return error(404, 'Record does not exist.', 81044);
      return { status: 200, json: { success: true, errors: [], result: { id } } };
    }
    const made = JSON.parse(body) as { name: string; type: string; content: string; ttl: number };
    const value = unquoteTxt(made.content);
    const isInside = made.name === zoneId || made.name.endsWith(`.${zoneId}`);
    if (made.type !== 'TXT' || made.ttl !== 60 || !isInside) return error(400, 'DNS Validation Error', 1004);
    if (fake.values(made.name).includes(value)) {
      return error(400, 'An identical record already exists.', 81058);
    }
    const record = fake.add(made.name, value);
    return { status: 200, json: { success: true, errors: [], result: { ...record, content: made.content } } };
  },
};

function listed(fake: FakeProvider, { query }: FakeRequest, all: readonly unknown[]): FakeReply {
  const page = Number(query.get('page'));
  const { items, pages } = fake.page(all, page);
  const result_info = { page, per_page: fake.pageSize, count: items.length, total_pages: pages };
  return { status: 200, json: { success: true, errors: [], messages: [], result: items, result_info } };
}
