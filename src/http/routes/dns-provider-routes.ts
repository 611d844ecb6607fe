/** DNS providers for administrators: create with credentials that are never returned, test, and delete. */
import { z } from 'zod';
import { withDeadline } from '../../base/deadline.ts';
import { minute } from '../../base/duration.ts';
import { isAddress, parseIdentifier } from '../../base/identifier.ts';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { dnsProviderTypes } from '../../dns/providers/provider-types.ts';
import type { DatabaseContext } from '../../domain/contexts.ts';
import {
  addDnsProvider,
  removeDnsProvider,
  secretFileHint,
  tryDnsProvider,
} from '../../domain/dns-providers/dns-providers.ts';
import type { DnsChangeContext } from '../../domain/issuance-contexts.ts';
import {
  type DnsProviderView,
  viewDnsProvider,
  viewDnsProviders,
} from '../../domain/issuers/issuer-views.ts';
import {
  addDnsProviderBody,
  byNameQuery,
  dnsProviderSchema,
  dnsProviderTypeSchema,
  dnsTestBody,
  dnsTestSchema,
} from '../openapi/administration-schemas.ts';
import { noQuery } from '../openapi/schemas.ts';
import { json, noContent } from '../request/reply.ts';
import { longBodyLimit } from '../request/request-body.ts';
import { type Route, route } from '../request/route.ts';
import { following, pageReply } from './list-reply.ts';
import { answeringOperators } from './operator-answers.ts';

const access = { kind: 'administrator' } as const;

/** They run local programs; a session must not become a shell. */
const commandLineOnly = new Set(['exec', 'lexicon', 'acme-sh']);

/** A person waits for it, possibly behind a proxy with a timeout. */
const testPatience = 2 * minute;

export const dnsProviderRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/dns-providers',
    id: 'listDnsProviders',
    summary: 'List DNS providers and their zones by name, without their credentials',
    access,
    query: byNameQuery,
    replies: { 200: { description: 'a page', schema: z.array(dnsProviderSchema), headers: ['Link'] } },
    problems: [],
    handle: async ({ context: { vault }, ...call }) =>
      pageReply(
        following(await viewDnsProviders(vault), call.query),
        call,
        (provider) => provider,
        ({ name }) => name,
      ),
  }),
  route({
    method: 'POST',
    path: '/api/v1/dns-providers',
    id: 'addDnsProvider',
    summary: 'Create a DNS provider for the zones that it manages',
    access,
    query: noQuery,
    body: addDnsProviderBody,
    bodyLimit: longBodyLimit,
    replies: { 201: { description: 'added', schema: dnsProviderSchema } },
    problems: [],
    handle: async ({ context: { vault }, actor, body: { config, ...input } }) => {
      if (commandLineOnly.has(input.type)) throw onCommandLine(input.type);
      const secret = new Secret(Buffer.from(JSON.stringify(config)));
      await answeringOperators(() => addDnsProvider(vault, actor, input, secret), secretFileHint);
      return json(201, await requireAt(vault, input.name));
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/v1/dns-providers/{name}',
    id: 'removeDnsProvider',
    summary: 'Delete a DNS provider and its credentials',
    access,
    query: noQuery,
    approval: async ({ context: { vault }, params }) =>
      `Delete the DNS provider ${(await requireAt(vault, params.name)).name}`,
    replies: { 204: { description: 'deleted; recorded in the audit log', contentType: 'none' } },
    problems: ['not_found'],
    handle: async ({ context: { vault }, actor, params }) => {
      const { name } = await requireAt(vault, params.name);
      await answeringOperators(() => removeDnsProvider(vault, actor, name));
      return noContent;
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/dns-providers/{name}/test',
    id: 'testDnsProvider',
    summary:
      'Test a DNS provider: create a challenge record, wait up to two minutes until it is visible, and remove it',
    access,
    query: noQuery,
    body: dnsTestBody,
    bodyLimit: longBodyLimit,
    replies: { 200: { description: 'the record was created, seen and removed', schema: dnsTestSchema } },
    problems: ['not_found'],
    handle: async ({ context: { vault }, params, body, gone }) => {
      const { name, type } = await requireAt(vault, params.name);
      if (type === 'manual') throw refused('name', 'is a manual provider; there is nothing to test');
      const domain = parseIdentifier(body.domain);
      if (domain === undefined || isAddress(domain)) {
        throw refused('domain', 'must be a domain such as www.example.com');
      }
      const steps: { at: string; text: string }[] = [];
      const say = (text: string) => steps.push({ at: formatTimestamp(vault.world.now()), text });
      await answeringOperators(() => tried(vault, { name, domain }, say, gone()));
      return json(200, { domain, steps });
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/dns-provider-types',
    id: 'listDnsProviderTypes',
    summary: 'List the types of DNS providers and their settings',
    access,
    query: noQuery,
    replies: { 200: { description: 'all types', schema: z.array(dnsProviderTypeSchema) } },
    problems: [],
    handle: async () =>
      json(
        200,
        [...dnsProviderTypes.values()].map(({ type, title, config }) => ({
          type,
          title,
          config: z.toJSONSchema(config, { io: 'input', unrepresentable: 'any' }),
          command_line_only: commandLineOnly.has(type),
        })),
      ),
  }),
];

async function tried(
  vault: DatabaseContext & DnsChangeContext,
  what: { readonly name: string; readonly domain: string },
  say: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  await withDeadline(vault.world, testPatience, signal, async (deadline) => {
    try {
      await tryDnsProvider(vault, what, say, deadline.signal);
    } catch (error) {
      if (deadline.ended() !== 'timeout') throw error;
      throw new Problem('invalid_request', {
        detail: 'The TXT record was not visible within two minutes.',
        hint: 'Propagation can take longer: renewals and "vault dns-provider test" wait up to ten minutes.',
        cause: error,
      });
    }
  });
}

async function requireAt(vault: DatabaseContext, name = ''): Promise<DnsProviderView> {
  const provider = await viewDnsProvider(vault, name);
  if (provider !== undefined) return provider;
  throw new Problem('not_found', { detail: 'DNS provider not found.' });
}

function refused(path: string, message: string): Problem {
  return new Problem('invalid_request', { detail: `${path}: ${message}.`, errors: [{ path, message }] });
}

function onCommandLine(type: string): Problem {
  const message = `providers of type ${type} run local programs and can only be added on the vault's host`;
  return new Problem('invalid_request', {
    detail: `type: ${message}.`,
    hint: `Run "vault dns-provider add --type ${type}" there.`,
    errors: [{ path: 'type', message }],
  });
}
