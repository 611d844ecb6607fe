/** ACME accounts for administrators: list, delete, key rollover and deactivation. */
import { z } from 'zod';
import { Problem } from '../../base/problem.ts';
import { closeAccount, rolloverAccount } from '../../domain/acme-accounts/acme-account-changes.ts';
import { acmeAccountView, deleteAccount, listAccounts } from '../../domain/acme-accounts/acme-accounts.ts';
import { acmeAccountSchema, acmeAccountsQuery, noQuery } from '../openapi/schemas.ts';
import { noContent } from '../request/reply.ts';
import { type Call, type Route, route } from '../request/route.ts';
import { pageReply } from './list-reply.ts';
import { answeringOperators } from './operator-answers.ts';

const access = { kind: 'administrator' } as const;

export const acmeAccountRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/acme-accounts',
    id: 'listAcmeAccounts',
    summary: 'List ACME accounts, oldest first',
    access,
    query: acmeAccountsQuery,
    replies: { 200: { description: 'a page', schema: z.array(acmeAccountSchema), headers: ['Link'] } },
    problems: [],
    handle: async ({ context: { vault }, ...call }) => {
      const rows = await listAccounts(vault, { after: call.query.after, limit: call.query.limit + 1 });
      return pageReply([rows], call, acmeAccountView, ({ id }) => id);
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/v1/acme-accounts/{id}',
    id: 'deleteAcmeAccount',
    summary: 'Delete an ACME account that no issuer uses, with its key',
    access,
    query: noQuery,
    approval: async (call) => `Delete the ACME account ${await knownId(call)}`,
    replies: { 204: { description: 'deleted; recorded in the audit log', contentType: 'none' } },
    problems: ['acme_account_not_found', 'acme_account_current'],
    handle: async ({ context: { vault }, actor, params }) => {
      await deleteAccount(vault, actor, params.id ?? '');
      return noContent;
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/acme-accounts/{id}/rollover',
    id: 'rolloverAcmeAccount',
    summary: 'Replace the key of an ACME account',
    access,
    query: noQuery,
    replies: { 204: { description: 'the CA accepted the new key', contentType: 'none' } },
    problems: ['acme_account_not_found'],
    handle: async ({ context: { vault }, actor, params, gone }) => {
      await answeringOperators(() => rolloverAccount(vault, actor, params.id ?? '', gone()));
      return noContent;
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/acme-accounts/{id}/deactivate',
    id: 'deactivateAcmeAccount',
    summary: 'Deactivate an ACME account at its CA permanently; issuers register a new one when they need it',
    access,
    query: noQuery,
    approval: async (call) => `Deactivate the ACME account ${await knownId(call)} at its CA`,
    replies: { 204: { description: 'deactivated', contentType: 'none' } },
    problems: ['acme_account_not_found'],
    handle: async ({ context: { vault }, actor, params, gone }) => {
      await answeringOperators(() => closeAccount(vault, actor, params.id ?? '', gone()));
      return noContent;
    },
  }),
];

/** Throws `acme_account_not_found`. */
async function knownId({
  context: { vault },
  params: { id = '' },
}: Pick<Call, 'context' | 'params'>): Promise<number> {
  const number = /^[1-9]\d{0,14}$/.test(id) ? Number(id) : 0;
  const [account] = await listAccounts(vault, { after: number - 1, limit: 1 });
  if (account?.id !== number) throw new Problem('acme_account_not_found');
  return number;
}
