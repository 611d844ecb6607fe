/** TXT records at Hetzner, by the DNS part of its Cloud API: changes are actions, which are waited for. */
import { z } from 'zod';
import { second } from '../../base/duration.ts';
import { Secret } from '../../base/secret.ts';
import { DnsProviderError, type DnsProviderType, type TxtRecord } from '../dns-provider.ts';
import { quoteTxt, unquoteTxt } from '../resolver/txt-string.ts';
import { accountZone, relativeName, zoneMissing } from './account-zone.ts';
import { apiUrl, credential } from './api-settings.ts';
import { type ApiAnswer, type JsonApi, jsonApi, pause } from './json-api.ts';
import { recordSetProvider } from './record-set.ts';

const config = z.strictObject({
  api_token: credential('an API token of a Hetzner Cloud project'),
  base_url: apiUrl.optional(),
});

const title = 'Hetzner';
const permission =
  'The API token needs Read & Write and must be created in the Cloud Console (Security, API tokens) of the project that holds the zone.';
const polls = 60;
/** The set is in use, was changed, or does not fit to what was sent: reading it again tells. */
const conflicts = [409, 422, 423];

const zoneSchema = z.object({ id: z.number(), name: z.string(), mode: z.string().optional() });
const zonePage = z.object({
  zones: z.array(zoneSchema),
  meta: z.object({ pagination: z.object({ next_page: z.number().nullish() }) }).optional(),
});
const setSchema = z.object({ rrset: z.object({ records: z.array(z.object({ value: z.string() })) }) });
const problem = z.object({ code: z.string(), message: z.string() });
const actionSchema = z.object({
  action: z.object({ id: z.number(), status: z.string(), error: problem.nullish() }),
});

/** State: the records as Hetzner has them; undefined where there is no set. */
export const hetzner: DnsProviderType<z.infer<typeof config>> = {
  type: 'hetzner',
  title: 'Hetzner (Cloud API)',
  config,
  plain: 'api_token',
  create: ({ api_token, base_url }, context) => {
    const token = new Secret(api_token);
    const api = jsonApi({
      context,
      title,
      baseUrl: base_url ?? 'https://api.hetzner.cloud/v1',
      permission,
      secrets: [token],
      wordsOf: (body) => {
        const said = z.object({ error: problem }).safeParse(body).data?.error;
        return said === undefined ? undefined : `${said.message} [${said.code}]`;
      },
      authorize: () => ({ Authorization: `Bearer ${token.expose()}` }),
    });

    const finished = async (begun: ApiAnswer, signal: AbortSignal): Promise<void> => {
      const { purpose } = begun.request;
      let { action } = api.read(actionSchema, begun);
      for (let poll = 0; action.status === 'running'; poll += 1) {
        if (poll >= polls) throw new DnsProviderError(`${title} took too long to ${purpose}`);
        await pause(context, title, second, signal);
        const path = `/actions/${action.id}`;
        action = api.read(actionSchema, await api.send({ method: 'GET', path, purpose }, signal)).action;
      }
      if (action.status === 'success') return;
      const why = api.shown(action.error?.message ?? action.status);
      throw new DnsProviderError(`${title} failed to ${purpose}: ${why ?? 'the action failed'}`);
    };

    return recordSetProvider<readonly string[] | undefined>(context, title, async (record, signal) => {
      const zone = await zoneOf(api, record, signal);
      const rrName = encodeURIComponent(relativeName(record.name, zone.name)) || '@';
      const path = `/zones/${zone.id}/rrsets/${rrName}/TXT`;
      const change = async (verb: 'add' | 'remove', json: unknown) => {
        const purpose = `${verb} a TXT record at ${record.name}`;
        const answer = await api.send(
          {
            method: 'POST',
            path: `${path}/actions/${verb}_records`,
            purpose,
            json,
            accept: [404, ...conflicts],
          },
          signal,
        );
        if (answer.status >= 400) return api.refusal(answer);
        await finished(answer, signal);
        return undefined;
      };
      return {
        read: async () => {
          const purpose = `read the TXT records of ${record.name}`;
          const answer = await api.send({ method: 'GET', path, purpose, accept: [404] }, signal);
          if (answer.status === 404) return { values: [], state: undefined };
          const held = api.read(setSchema, answer).rrset.records.map(({ value }) => value);
          return { values: held.map(unquoteTxt), state: held };
        },
        // The TTL of a set that exists must not be given another value here.
        add: (value, { state }) =>
          change('add', {
            records: [{ value: quoteTxt(value) }],
            ...(state === undefined && { ttl: 60 }),
          }),
        remove: (value, { state = [] }) =>
          change('remove', {
            records: state.filter((held) => unquoteTxt(held) === value).map((held) => ({ value: held })),
          }),
      };
    });
  },
};

async function zoneOf(api: JsonApi, record: TxtRecord, signal: AbortSignal) {
  const zones: z.infer<typeof zoneSchema>[] = [];
  for (let page: number | null | undefined = 1; typeof page === 'number'; ) {
    const query = { page, per_page: 50 };
    const answer = await api.send(
      { method: 'GET', path: '/zones', purpose: 'list the zones', query },
      signal,
    );
    const listed = api.read(zonePage, answer);
    zones.push(...listed.zones);
    const next: number | null | undefined = listed.meta?.pagination.next_page;
    page = typeof next === 'number' && next > page ? next : undefined;
  }
  const zone = accountZone(zones, record);
  if (zone === undefined) {
    throw zoneMissing(
      title,
      record,
      'Check that the zone is in the Cloud Console, in the project of this token (zones of the old DNS Console must be moved there).',
    );
  }
  if (zone.mode !== 'secondary') return zone;
  throw new DnsProviderError(
    `${title} serves ${zone.name} as a secondary zone, which can only be changed at its primary server`,
  );
}
