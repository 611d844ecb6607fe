/** A fake of deSEC's API v1, limited to TXT records. */
import { desec } from '../../../src/dns/providers/desec.ts';
import { quoteTxt, unquoteTxt } from '../../../src/dns/resolver/txt-string.ts';
import { type FakeApi, wholeName } from '../../harness/dns/fake-provider.ts';
import type { FakeReply } from '../../harness/http/fake-server.ts';

const token = 'desec-i-T3b1h_OI';

const error = (status: number, detail: string): FakeReply => ({ status, json: { detail } });

export const fakeDesec: FakeApi<{ api_token: string; base_url?: string | undefined }> = {
  type: desec,
  origin: 'https://desec.io',
  config: (url) => ({ api_token: token, base_url: `${url}/api/v1` }),
  wrong: (url) => ({ api_token: 'desec-wrong-0815', base_url: `${url}/api/v1` }),
  secrets: [token, 'desec-wrong-0815'],
  error,
  strange: { status: 200, json: { domains: [] } },
  handler: (fake) => (request) => {
    const { method, path, body } = request;
    if (request.headers.authorization !== `Token ${token}`) return error(401, 'Invalid token.');
    if (path === '/api/v1/domains/') {
      const name = request.query.get('owns_qname') ?? '';
      const owners = fake.publicZones.filter((zone) => name === zone || name.endsWith(`.${zone}`));
      const longest = owners.sort((a, b) => b.length - a.length).slice(0, 1);
      return { status: 200, json: longest.map((zone) => ({ name: zone, minimum_ttl: 3600 })) };
    }
    const [, zone, rest] = /^\/api\/v1\/domains\/([^/]+)\/rrsets\/(.*)$/.exec(path) ?? [];
    if (zone === undefined || !fake.publicZones.includes(zone)) return undefined;
    if (rest === '' && method === 'POST') {
      fake.writing();
      const made = JSON.parse(body) as { subname: string; type: string; ttl: number; records: string[] };
      const name = wholeName(made.subname, zone);
      if (made.ttl < 3600) return { status: 400, json: { ttl: ['Ensure this value is greater than 3600.'] } };
      if (fake.values(name).length > 0) {
        const non_field_errors = ['Another RRset with the same subdomain and type exists for this domain.'];
        return { status: 400, json: { non_field_errors } };
      }
      fake.set(name, made.records.map(unquoteTxt));
      return { status: 201, json: made };
    }
    const relative = /^([^/]+)\/TXT\/$/.exec(rest ?? '')?.[1];
    if (relative === undefined) return undefined;
    const name = wholeName(relative, zone);
    if (method === 'GET') {
      const held = fake.seenAt(name);
      if (held.length === 0) return error(404, 'Not found.');
      return {
        status: 200,
        json: { subname: relative, type: 'TXT', ttl: 3600, records: held.map(quoteTxt) },
      };
    }
    if (method !== 'PATCH') return undefined;
    fake.writing();
    if (fake.values(name).length === 0) return error(404, 'Not found.');
    const { records } = JSON.parse(body) as { records: string[] };
    if (!records.every((one) => /^"[^"]*"( "[^"]*")*$/.test(one)))
      return { status: 400, json: { records: ['not in quotes'] } };
    fake.set(name, records.map(unquoteTxt));
    return records.length === 0 ? { status: 204 } : { status: 200, json: { records } };
  },
};
