/** A fake of DigitalOcean's API v2, limited to TXT records. Like the real API it allows duplicate records. */
import { digitalocean } from '../../../src/dns/providers/digitalocean.ts';
import { type FakeApi, type FakeProvider, wholeName } from '../../harness/dns/fake-provider.ts';
import type { FakeReply, FakeRequest } from '../../harness/http/fake-server.ts';

const token = 'dop_v1_4711secret';

const error = (status: number, message: string, id = 'unauthorized'): FakeReply => ({
  status,
  json: { id, message, request_id: '6b9269d4' },
});

export const fakeDigitalocean: FakeApi<{ api_token: string; base_url?: string | undefined }> = {
  type: digitalocean,
  origin: 'https://api.digitalocean.com',
  config: (url) => ({ api_token: token, base_url: `${url}/v2` }),
  wrong: (url) => ({ api_token: 'dop_v1_wrong', base_url: `${url}/v2` }),
  secrets: [token, 'dop_v1_wrong'],
  error,
  strange: { status: 200, json: { domains: 'none' } },
  handler: (fake) => (request) => {
    const { method, path, body } = request;
    if (request.headers.authorization !== `Bearer ${token}`) return error(401, 'Unable to authenticate you');
    if (path === '/v2/domains') {
      return listed(
        fake,
        request,
        'domains',
        fake.publicZones.map((name) => ({ name, ttl: 1800 })),
      );
    }
    const [, zone, id] = /^\/v2\/domains\/([^/]+)\/records(?:\/(\d+))?$/.exec(path) ?? [];
    if (zone === undefined || !fake.publicZones.includes(zone)) return undefined;
    if (method === 'GET') {
      const name = request.query.get('name') ?? '';
      const short = name === zone ? '@' : name.slice(0, -(zone.length + 1));
      const found = fake.seen().filter((record) => record.name === name);
      const shown = found.map((record) => ({
        id: Number(record.id),
        type: 'TXT',
        name: short,
        data: record.value,
      }));
      return listed(fake, request, 'domain_records', shown);
    }
    fake.writing();
    if (method === 'DELETE') {
      if (fake.remove((record) => record.id === id)) return { status: 204 };
      return error(404, 'The resource you were accessing could not be found.', 'not_found');
    }
    const made = JSON.parse(body) as { name: string; type: string; data: string; ttl: number };
    if (made.type !== 'TXT' || made.ttl < 30) return error(422, 'TTL is too low', 'unprocessable_entity');
    const record = fake.add(wholeName(made.name, zone), made.data);
    return { status: 201, json: { domain_record: { ...made, id: Number(record.id) } } };
  },
};

function listed(fake: FakeProvider, request: FakeRequest, field: string, all: readonly unknown[]): FakeReply {
  const page = Number(request.query.get('page') ?? '1');
  const { items, hasMore } = fake.page(all, page);
  const next = new URL(request.url);
  next.searchParams.set('page', String(page + 1));
  const pages = hasMore ? { next: next.href, last: next.href } : {};
  return { status: 200, json: { [field]: items, links: { pages }, meta: { total: all.length } } };
}
