/** Accounts of ACME clients (RFC 8555 §7.3). */
import { z } from 'zod';
import {
  accountUpdateInput,
  newAccountInput,
  requestAccount,
  updateAccount,
} from '../../domain/acme-server/accounts/accounts.ts';
import { changeKey } from '../../domain/acme-server/accounts/key-change.ts';
import { nothingHere, pageOrders } from '../../domain/acme-server/orders/orders.ts';
import { AcmeProblem } from '../../domain/acme-server/protocol/acme-problem.ts';
import { parseObject } from '../../domain/acme-server/protocol/signed-messages.ts';
import { json } from '../request/reply.ts';
import { type Route, route } from '../request/route.ts';
import { answerHeaders, signedRoute } from './acme-protocol.ts';
import { accountSchema, orderListSchema } from './acme-schemas.ts';
import { numberIn } from './acme-urls.ts';
import { viewAccount } from './resource-views.ts';
import {
  type AccountCall,
  forAccount,
  payloadOf,
  readSigned,
  recordingRefusals,
  requireAllowance,
  requireRead,
  urlsOf,
} from './signed-calls.ts';

const ordersOnPage = 100;

export const acmeServerAccountRoutes: readonly Route[] = [
  route({
    ...signedRoute,
    path: '/acme/{issuer}/new-account',
    id: 'createAcmeAccount',
    summary:
      'Create an account with an external account binding, or find the one with the key of the request',
    replies: {
      200: { description: 'exists', schema: accountSchema, headers: [...answerHeaders, 'Location'] },
      201: { description: 'created', schema: accountSchema, headers: [...answerHeaders, 'Location'] },
    },
    handle: async (call) => {
      const { vault, acme } = call.context;
      const request = await readSigned(call);
      if (request.message.header.jwk === undefined) {
        throw new AcmeProblem('malformed', 'The request must have the header jwk: the key of the account.');
      }
      const input = payloadOf(request.message, newAccountInput);
      return recordingRefusals(call, async (known) => {
        const found = await requestAccount(vault, acme, request, input, (client) =>
          requireAllowance(call, client),
        );
        known(found);
        const { account, isNew } = found;
        const urls = urlsOf(call);
        return json(isNew ? 201 : 200, viewAccount(account, urls), { Location: urls.account(account.id) });
      });
    },
  }),
  route({
    ...signedRoute,
    path: '/acme/{issuer}/account/{id}',
    id: 'updateAcmeAccount',
    summary: 'Return an account, replace its contacts or deactivate it',
    replies: {
      200: { description: 'the account', schema: accountSchema, headers: [...answerHeaders, 'Location'] },
    },
    handle: (call) =>
      forAccount(call, async (given) => {
        const { caller, urls, payload } = given;
        requireOwn(given);
        const account =
          payload.length === 0
            ? caller.account
            : await updateAccount(call.context.vault, caller, payloadOf(given, accountUpdateInput));
        return json(200, viewAccount(account, urls), { Location: urls.account(account.id) });
      }),
  }),
  route({
    ...signedRoute,
    path: '/acme/{issuer}/account/{id}/orders',
    id: 'listAcmeOrders',
    summary: 'List the orders of an account, newest first',
    query: z.object({
      before: z
        .string()
        .regex(/^[1-9]\d{0,14}$/)
        .optional(),
    }),
    replies: { 200: { description: 'URLs of orders', schema: orderListSchema, headers: answerHeaders } },
    handle: (call) =>
      forAccount(call, async (given) => {
        const { caller, urls } = given;
        requireOwn(given);
        requireRead(given);
        const before = numberIn(call.query.before);
        const { ids, next } = await pageOrders(call.context.vault, caller, { before, limit: ordersOnPage });
        const more =
          next === undefined ? {} : { Link: `<${urls.orders(caller.account.id, next)}>;rel="next"` };
        return json(200, { orders: ids.map(urls.order) }, more);
      }),
  }),
  route({
    ...signedRoute,
    path: '/acme/{issuer}/key-change',
    id: 'changeAcmeAccountKey',
    summary: 'Give an account another key',
    replies: {
      200: { description: 'the account', schema: accountSchema, headers: [...answerHeaders, 'Location'] },
    },
    handle: (call) =>
      forAccount(call, async ({ caller, urls, accountUrl: kid, payload }) => {
        const { vault, acme } = call.context;
        await changeKey(vault, acme.keys, caller, {
          payload: parseObject(payload),
          url: urls.keyChange,
          kid,
        });
        const { account } = caller;
        return json(200, viewAccount(account, urls), { Location: urls.account(account.id) });
      }),
  }),
];

/** Throws the same as for an account that does not exist if the path has another one than that of the signature. */
function requireOwn({ call, caller }: AccountCall): void {
  if (numberIn(call.params.id) !== caller.account.id) throw nothingHere();
}
