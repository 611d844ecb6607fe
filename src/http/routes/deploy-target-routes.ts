/** Deploy targets for administrators: create with credentials that are never returned, change, and deploy now. */
import { z } from 'zod';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import {
  targetCertificateView,
  viewDeployTarget,
  viewDeployTargets,
} from '../../domain/deploy-targets/deploy-target-views.ts';
import {
  addDeployTarget,
  changeDeployTarget,
  removeDeployTarget,
  requireDeployTarget,
} from '../../domain/deploy-targets/deploy-targets.ts';
import { deployNow } from '../../domain/deploy-targets/deploying.ts';
import { targetTypes } from '../../targets/target-types.ts';
import { byNameQuery } from '../openapi/administration-schemas.ts';
import {
  addDeployTargetBody,
  changeDeployTargetBody,
  deployTargetSchema,
  deployTargetSummarySchema,
  deployTargetTypeSchema,
  targetCertificateSchema,
} from '../openapi/deploy-target-schemas.ts';
import { noQuery } from '../openapi/schemas.ts';
import { json, noContent } from '../request/reply.ts';
import { longBodyLimit } from '../request/request-body.ts';
import { type Call, type Route, route } from '../request/route.ts';
import { pageReply } from './list-reply.ts';
import { answeringOperators } from './operator-answers.ts';

const access = { kind: 'administrator' } as const;

/** They run local programs; a session must not become a shell. */
const commandLineOnly = new Set(['exec']);

const path = '/api/v1/deploy-targets';

export const deployTargetRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path,
    id: 'listDeployTargets',
    summary: 'List deploy targets by name, without their credentials',
    access,
    query: byNameQuery,
    replies: {
      200: { description: 'a page', schema: z.array(deployTargetSummarySchema), headers: ['Link'] },
    },
    problems: [],
    handle: async (call) =>
      pageReply(
        viewDeployTargets(call.context.vault, call.query.after),
        call,
        (target) => target,
        ({ name }) => name,
      ),
  }),
  route({
    method: 'POST',
    path,
    id: 'addDeployTarget',
    summary: 'Add a deploy target, on which the vault installs certificates with their private keys',
    access,
    query: noQuery,
    body: addDeployTargetBody,
    bodyLimit: longBodyLimit,
    approval: async ({ body: { name, type, certificates } }) =>
      `Add the deploy target ${name} (${type}) for ${listed(certificates)}`,
    replies: { 201: { description: 'added; recorded in the audit log', schema: deployTargetSchema } },
    problems: ['deploy_target_exists', 'too_many_deploy_targets'],
    handle: async ({ context: { vault }, actor, body: { settings, ...input } }) => {
      if (commandLineOnly.has(input.type)) throw onCommandLine('type', input.type);
      await answeringOperators(() => addDeployTarget(vault, actor, input, sent(settings)));
      return json(201, await viewDeployTarget(vault, input.name));
    },
  }),
  route({
    method: 'GET',
    path: `${path}/{name}`,
    id: 'getDeployTarget',
    summary: 'Return a deploy target with its certificates, without its credentials',
    access,
    query: noQuery,
    replies: { 200: { description: 'the target', schema: deployTargetSchema } },
    problems: ['deploy_target_not_found'],
    handle: async ({ context: { vault }, params }) =>
      json(200, await viewDeployTarget(vault, params.name ?? '')),
  }),
  route({
    method: 'PATCH',
    path: `${path}/{name}`,
    id: 'changeDeployTarget',
    summary: 'Change a deploy target; omitted members stay unchanged',
    access,
    query: noQuery,
    body: changeDeployTargetBody,
    bodyLimit: longBodyLimit,
    approval: async (call) => {
      const { name } = await targetAt(call);
      const { certificates, settings } = call.body;
      const changes = [
        ...(certificates === undefined ? [] : [listed(certificates)]),
        ...(settings === undefined ? [] : ['other settings']),
      ];
      return `Change the deploy target ${name}: ${changes.join(', ')}`;
    },
    replies: { 200: { description: 'changed; recorded in the audit log', schema: deployTargetSchema } },
    problems: ['deploy_target_not_found', 'too_many_deploy_targets'],
    handle: async (call) => {
      const { vault } = call.context;
      const { name, type } = await targetAt(call);
      const { settings, ...input } = call.body;
      if (settings !== undefined && commandLineOnly.has(type)) throw onCommandLine('settings', type);
      const replacement = settings === undefined ? undefined : sent(settings);
      await answeringOperators(() => changeDeployTarget(vault, call.actor, name, input, replacement));
      return json(200, await viewDeployTarget(vault, name));
    },
  }),
  route({
    method: 'DELETE',
    path: `${path}/{name}`,
    id: 'removeDeployTarget',
    summary: 'Remove a deploy target with its credentials; what is installed stays there',
    access,
    query: noQuery,
    replies: { 204: { description: 'removed; recorded in the audit log', contentType: 'none' } },
    problems: ['deploy_target_not_found'],
    handle: async ({ context: { vault }, actor, params }) => {
      await removeDeployTarget(vault, actor, params.name ?? '');
      return noContent;
    },
  }),
  route({
    method: 'POST',
    path: `${path}/{name}/certificates/{certificate}/deploy`,
    id: 'deployCertificate',
    summary: 'Install a certificate on a deploy target now, unless it is still installed there',
    access,
    query: noQuery,
    replies: { 200: { description: 'the certificate on the target', schema: targetCertificateSchema } },
    problems: ['deploy_target_not_found', 'certificate_not_found', 'deploy_failed', 'rate_limited'],
    handle: async ({ context: { vault }, actor, params, gone }) => {
      const at = { target: params.name ?? '', certificate: params.certificate ?? '' };
      return json(200, targetCertificateView(await deployNow(vault, actor, at, gone())));
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/deploy-target-types',
    id: 'listDeployTargetTypes',
    summary: 'List the types of deploy targets and their settings',
    access,
    query: noQuery,
    replies: { 200: { description: 'all types', schema: z.array(deployTargetTypeSchema) } },
    problems: [],
    handle: async () =>
      json(
        200,
        [...targetTypes.values()].map(({ type, title, config }) => ({
          ...{ type, title, command_line_only: commandLineOnly.has(type) },
          settings: z.toJSONSchema(config, { io: 'input', unrepresentable: 'any' }),
        })),
      ),
  }),
];

function targetAt({ context: { vault }, params }: Pick<Call, 'context' | 'params'>) {
  return requireDeployTarget(vault.db.reader, params.name ?? '');
}

function sent(settings: Readonly<Record<string, unknown>>): Secret {
  return new Secret(Buffer.from(JSON.stringify(settings)));
}

const maxListed = 10;

/** `the certificates web and api`, for an approval. */
function listed(names: readonly string[]): string {
  if (names.length === 0) return 'no certificate';
  const more = names.length > maxListed ? ` and ${names.length - maxListed} more` : '';
  return `the certificates ${names.slice(0, maxListed).join(', ')}${more}`;
}

function onCommandLine(member: string, type: string): Problem {
  const message = `targets of type ${type} run local programs and can only be added on the vault's host`;
  return new Problem('invalid_request', {
    detail: `${member}: ${message}.`,
    errors: [{ path: member, message }],
    hint: 'Run "vault deploy-target add" there.',
  });
}
