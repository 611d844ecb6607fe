/** Orders, authorizations and challenges of ACME clients (RFC 8555 §7.4, §7.5). */
import { z } from 'zod';
import { second } from '../../base/duration.ts';
import { authorizationsOf, type StoredChallenge } from '../../domain/acme-server/orders/authorizations.ts';
import { finalizeInput, finalizeOrder } from '../../domain/acme-server/orders/finalization.ts';
import { pauseOf } from '../../domain/acme-server/orders/gateway-orders.ts';
import { requireCaa } from '../../domain/acme-server/orders/order-caa.ts';
import {
  deactivateAuthorization,
  requireAuthorization,
  requireChallenge,
} from '../../domain/acme-server/orders/order-changes.ts';
import {
  createOrder,
  newOrderInput,
  requireOrder,
  type ShownOrder,
} from '../../domain/acme-server/orders/orders.ts';
import { resumeValidations, startValidation } from '../../domain/acme-server/orders/validation-start.ts';
import { AcmeProblem } from '../../domain/acme-server/protocol/acme-problem.ts';
import { json, type WholeReply } from '../request/reply.ts';
import { type Route, route } from '../request/route.ts';
import { answerHeaders, signedRoute } from './acme-protocol.ts';
import { authorizationSchema, challengeSchema, orderSchema } from './acme-schemas.ts';
import { numberIn } from './acme-urls.ts';
import { viewAuthorization, viewChallenge, viewOrder } from './resource-views.ts';
import { type AccountCall, forAccount, payloadOf, requireRead } from './signed-calls.ts';

/** With a pause where something is in progress. */
const paced = [...answerHeaders, 'Retry-After'];
const located = [...paced, 'Location'];

const deactivation = z.object({
  status: z.literal('deactivated', 'the status of an authorization can only be set to "deactivated"'),
});

export const acmeOrderRoutes: readonly Route[] = [
  route({
    ...signedRoute,
    path: '/acme/{issuer}/new-order',
    id: 'createAcmeOrder',
    summary: 'Order a certificate',
    replies: { 201: { description: 'ordered', schema: orderSchema, headers: located } },
    handle: (call) =>
      forAccount(call, async (given) => {
        const { vault } = call.context;
        const { client, issuer } = given.caller;
        const order = await createOrder(vault, given.caller, payloadOf(given, newOrderInput)).catch(
          (error: unknown) => {
            if (error instanceof AcmeProblem) {
              vault.meter.ordered('refused', { client: client.name, issuer: issuer.name });
            }
            throw error;
          },
        );
        return orderReply(201, given, order);
      }),
  }),
  route({
    ...signedRoute,
    path: '/acme/{issuer}/order/{id}',
    id: 'getAcmeOrder',
    summary: 'Return an order',
    replies: { 200: { description: 'the order', schema: orderSchema, headers: located } },
    handle: (call) =>
      forAccount(call, async (given) => {
        requireRead(given);
        const order = await orderAt(given, call.params.id);
        await resume(given, order);
        return orderReply(200, given, order);
      }),
  }),
  route({
    ...signedRoute,
    path: '/acme/{issuer}/order/{id}/finalize',
    id: 'finalizeAcmeOrder',
    summary: 'Send the CSR of an order that is ready, and have its certificate issued',
    replies: { 200: { description: 'the order', schema: orderSchema, headers: located } },
    handle: (call) =>
      forAccount(call, async (given) => {
        const order = await orderAt(given, call.params.id);
        const input = payloadOf(given, finalizeInput);
        if (order.status === 'ready') await requireCaa(call.context.vault, order, given.accountUrl);
        return orderReply(200, given, await finalizeOrder(call.context.vault, given.caller, order, input));
      }),
  }),
  route({
    ...signedRoute,
    path: '/acme/{issuer}/authorization/{order}/{position}',
    id: 'getAcmeAuthorization',
    summary: 'Return an authorization, or deactivate it',
    replies: { 200: { description: 'the authorization', schema: authorizationSchema, headers: paced } },
    handle: (call) =>
      forAccount(call, async (given) => {
        const { order, position, ...rest } = await authorizationAt(given);
        const { vault } = call.context;
        if (given.payload.length > 0) payloadOf(given, deactivation);
        else await resume(given, order);
        const authorization =
          given.payload.length === 0
            ? rest.authorization
            : await deactivateAuthorization(vault, given.caller, order, position);
        const place = { orderId: order.id, position };
        const view = viewAuthorization(authorization, place, given.urls, vault.world.now());
        return json(200, view, pauseFor(authorization.challenges));
      }),
  }),
  route({
    ...signedRoute,
    path: '/acme/{issuer}/challenge/{order}/{position}/{type}',
    id: 'respondToAcmeChallenge',
    summary: 'Start the validation of a challenge, or return it',
    replies: { 200: { description: 'the challenge', schema: challengeSchema, headers: paced } },
    handle: (call) =>
      forAccount(call, async (given) => {
        const { order, position, authorization } = await authorizationAt(given);
        const found = requireChallenge(authorization, call.params.type ?? '');
        const { caller, accountUrl: accountUri, urls } = given;
        if (given.payload.length > 0) payloadOf(given, z.object({}));
        await resume(given, order);
        const challenge =
          given.payload.length === 0
            ? found
            : await startValidation(call.context.vault, {
                caller,
                order,
                position,
                authorization,
                challenge: found,
                accountUri,
              });
        const place = { orderId: order.id, position };
        const up = { Link: `<${urls.authorization(order.id, position)}>;rel="up"` };
        return json(200, viewChallenge(challenge, place, urls), { ...up, ...pauseFor([challenge]) });
      }),
  }),
];

function orderAt({ call, caller }: AccountCall, id: string | undefined): Promise<ShownOrder> {
  return requireOrder(call.context.vault, caller, numberIn(id));
}

async function authorizationAt(given: AccountCall) {
  const order = await orderAt(given, given.call.params.order);
  const position = numberIn(given.call.params.position) ?? -1;
  return { order, position, authorization: requireAuthorization(order, position) };
}

/** Begins validations again that a process left behind when it was killed. */
function resume({ call, caller, accountUrl: accountUri }: AccountCall, order: ShownOrder): Promise<void> {
  return resumeValidations(call.context.vault, { caller, order, accountUri });
}

/** How long clients wait before they look again, in seconds. */
const pauseSeconds = 1;

function pauseFor(challenges: readonly StoredChallenge[]): Readonly<Record<string, string>> {
  const isBusy = challenges.some(({ status }) => status === 'processing');
  return isBusy ? { 'Retry-After': String(pauseSeconds) } : {};
}

async function orderReply(
  status: number,
  { call, urls }: AccountCall,
  order: ShownOrder,
): Promise<WholeReply> {
  const { vault } = call.context;
  const view = viewOrder(order, urls, vault.world.now());
  const pause =
    view.status === 'processing'
      ? { 'Retry-After': String(Math.ceil((await pauseOf(vault, order)) / second)) }
      : pauseFor(authorizationsOf(order).flatMap(({ challenges }) => challenges));
  return json(status, view, { Location: urls.order(order.id), ...pause });
}
