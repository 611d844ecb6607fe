/** TXT records at deSEC, through API v1. */
import { z } from 'zod';
import { Secret } from '../../base/secret.ts';
import type { DnsProviderType, TxtRecord } from '../dns-provider.ts';
import { quoteTxt, unquoteTxt } from '../resolver/txt-string.ts';
import { accountZone, relativeName, zoneMissing } from './account-zone.ts';
import { apiUrl, credential } from './api-settings.ts';
import { type JsonApi, jsonApi, textsIn } from './json-api.ts';
import { recordSetProvider } from './record-set.ts';

const config = z.strictObject({
  api_token: credential('an API token of deSEC'),
  base_url: apiUrl.optional(),
});

const title = 'deSEC';
const permission =
  'The token must not have expired, must allow the address of this machine, and its policies must let it write TXT records of the domain.';
const domains = z.array(z.object({ name: z.string(), minimum_ttl: z.number().default(3600) }));

/** State: the records at deSEC; undefined if there is no record set. */
export const desec: DnsProviderType<z.infer<typeof config>> = {
  type: 'desec',
  title,
  config,
  plain: 'api_token',
  create: ({ api_token, base_url }, context) => {
    const token = new Secret(api_token);
    const api = jsonApi({
      context,
      title,
      baseUrl: base_url ?? 'https://desec.io/api/v1',
      permission,
      secrets: [token],
      describeError: (body) => textsIn(body).join(' '),
      authorize: () => ({ Authorization: `Token ${token.expose()}` }),
    });
    return recordSetProvider<readonly string[] | undefined>(context, title, async (record, signal) => {
      const zone = await zoneOf(api, record, signal);
      const sets = `/domains/${encodeURIComponent(zone.name)}/rrsets/`;
      const subname = relativeName(record.name, zone.name);
      const path = `${sets}${encodeURIComponent(subname) || '@'}/TXT/`;
      const { name } = record;
      const patch = async (records: readonly string[]) => {
        const purpose = `change the TXT records of ${name}`;
        const answer = await api.send(
          { method: 'PATCH', path, purpose, json: { records }, accept: [404] },
          signal,
        );
        return answer.status === 404 ? api.refusal(answer) : undefined;
      };
      return {
        read: async () => {
          const purpose = `read the TXT records of ${name}`;
          const answer = await api.send({ method: 'GET', path, purpose, accept: [404] }, signal);
          if (answer.status === 404) return { values: [], state: undefined };
          const { records } = api.read(z.object({ records: z.array(z.string()) }), answer);
          return { values: records.map(unquoteTxt), state: records };
        },
        add: async (value, { state }) => {
          if (state !== undefined) return await patch([...state, quoteTxt(value)]);
          const json = { subname, type: 'TXT', ttl: zone.minimum_ttl, records: [quoteTxt(value)] };
          const purpose = `create the TXT record ${name}`;
          const answer = await api.send({ method: 'POST', path: sets, purpose, json, accept: [400] }, signal);
          if (answer.status !== 400) return undefined;
          // Another client created the set meanwhile; any other 400 is about the request.
          if (textsIn(answer.body).some((text) => /\bexists?\b/i.test(text))) return api.refusal(answer);
          throw api.refusal(answer);
        },
        // An empty set is deleted.
        remove: async (value, { state = [] }) =>
          await patch(state.filter((held) => unquoteTxt(held) !== value)),
      };
    });
  },
};

async function zoneOf(api: JsonApi, record: TxtRecord, signal: AbortSignal) {
  const query = { owns_qname: record.name };
  const purpose = 'find the domain';
  const answer = await api.send({ method: 'GET', path: '/domains/', purpose, query }, signal);
  const zone = accountZone(api.read(domains, answer), record);
  if (zone !== undefined) return zone;
  throw zoneMissing(title, record, 'Check that the domain is in the account of this token.');
}
