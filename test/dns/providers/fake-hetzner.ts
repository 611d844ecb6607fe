/** A fake of Hetzner's DNS API, limited to TXT records. A change is an action that takes a while. */
import { hetzner } from '../../../src/dns/providers/hetzner.ts';
import { quoteTxt, unquoteTxt } from '../../../src/dns/resolver/txt-string.ts';
import { type FakeApi, wholeName } from '../../harness/dns/fake-provider.ts';
import type { FakeReply } from '../../harness/http/fake-server.ts';

const token = 'hcloud-LRK9DAWQ1ZAEFSrCNEEzLCUwhYX1U3g7';
/** The number of a failed action. */
export const failedAction = 666;

const error = (status: number, message: string, code = 'forbidden'): FakeReply => ({
  status,
  json: { error: { code, message, details: null } },
});

export const fakeHetzner: FakeApi<{ api_token: string; base_url?: string | undefined }> = {
  type: hetzner,
  origin: 'https://api.hetzner.cloud',
  config: (url) => ({ api_token: token, base_url: `${url}/v1` }),
  wrong: (url) => ({ api_token: 'hcloud-wrong-0815', base_url: `${url}/v1` }),
  secrets: [token, 'hcloud-wrong-0815'],
  error,
  strange: { status: 200, json: { zones: [{ name: 7 }] } },
  handler: (fake) => {
    const running = new Map<number, () => void>();
    return (request) => {
      const { method, path, body } = request;
      if (request.headers.authorization !== `Bearer ${token}`) {
        return error(401, 'unable to authenticate', 'unauthorized');
      }
      if (path === '/v1/zones') {
        const page = Number(request.query.get('page'));
        const zones = fake.publicZones.map((name, index) => ({ id: index + 1, name, mode: 'primary' }));
        const { items, hasMore } = fake.page(zones, page);
        const pagination = { page, next_page: hasMore ? page + 1 : null };
        return { status: 200, json: { zones: items, meta: { pagination } } };
      }
      const action = /^\/v1\/actions\/(\d+)$/.exec(path)?.[1];
      if (action !== undefined) {
        const id = Number(action);
        if (id === failedAction) {
          const why = { code: 'action_failed', message: `Action failed for ${token}` };
          return { status: 200, json: { action: { id, status: 'error', error: why } } };
        }
        running.get(id)?.();
        running.delete(id);
        return { status: 200, json: { action: { id, status: 'success', error: null } } };
      }
      const [, zoneId, relative, verb] =
        /^\/v1\/zones\/(\d+)\/rrsets\/([^/]+)\/TXT(?:\/actions\/(add|remove)_records)?$/.exec(path) ?? [];
      const zone = fake.publicZones[Number(zoneId) - 1];
      if (zone === undefined) return error(404, 'zone not found', 'not_found');
      const name = wholeName(relative, zone);
      if (method === 'GET') {
        const held = fake.seenAt(name);
        if (held.length === 0) return error(404, 'rrset not found', 'not_found');
        const records = held.map((value) => ({ value: quoteTxt(value), comment: '' }));
        return {
          status: 200,
          json: { rrset: { id: `${relative}/TXT`, name: relative, ttl: 3600, records } },
        };
      }
      fake.writing();
      const made = JSON.parse(body) as { ttl?: number; records: { value: string }[] };
      if (!made.records.every(({ value }) => /^"[^"]*"( "[^"]*")*$/.test(value)))
        return error(422, 'no quotes', 'invalid_input');
      const values = made.records.map(({ value }) => unquoteTxt(value));
      const held = fake.values(name);
      if (verb === 'remove') {
        if (!values.every((value) => held.includes(value)))
          return error(404, 'record not found', 'not_found');
      } else {
        if (held.length > 0 && made.ttl !== undefined)
          return error(422, 'ttl differs from the rrset', 'invalid_input');
        if (values.some((value) => held.includes(value)))
          return error(409, 'record exists', 'uniqueness_error');
      }
      const id = fake.version * 1000 + running.size;
      running.set(id, () => {
        if (verb === 'remove') fake.remove((record) => record.name === name && values.includes(record.value));
        else for (const value of values) fake.add(name, value);
      });
      return { status: 201, json: { action: { id, status: 'running', error: null } } };
    };
  },
};
