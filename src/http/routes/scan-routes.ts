/** Scans of networks for TLS servers, and what they found. */
import { z } from 'zod';
import { findFindings, findingView, requireFinding, wholeFinding } from '../../domain/scans/findings.ts';
import { createScanInput } from '../../domain/scans/scan-inputs.ts';
import { createScan, deleteScan, listScans, requireScan, scanView } from '../../domain/scans/scans.ts';
import { findingSchema, findingsQuery, scanSchema, wholeFindingSchema } from '../openapi/scan-schemas.ts';
import { noQuery } from '../openapi/schemas.ts';
import { json, noContent } from '../request/reply.ts';
import { type Route, route } from '../request/route.ts';
import { pageReply } from './list-reply.ts';

const access = { kind: 'administrator' } as const;

export const scanRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/endpoint-scans',
    id: 'listScans',
    summary: 'List the scans of networks, in the order of their creation',
    access,
    query: noQuery,
    replies: { 200: { description: 'all scans', schema: z.array(scanSchema) } },
    problems: [],
    handle: async ({ context: { vault } }) => json(200, await listScans(vault)),
  }),
  route({
    method: 'POST',
    path: '/api/v1/endpoint-scans',
    id: 'createScan',
    summary: 'Search networks for TLS servers, once or regularly; it begins within seconds',
    access,
    query: noQuery,
    body: createScanInput,
    replies: { 201: { description: 'created', schema: scanSchema } },
    problems: ['too_many_scans'],
    handle: async ({ context: { vault }, actor, body }) => {
      const id = await createScan(vault, actor, body);
      return json(201, scanView(await requireScan(vault, id)));
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/endpoint-scans/{id}',
    id: 'getScan',
    summary: 'Return a scan with its progress',
    access,
    query: noQuery,
    replies: { 200: { description: 'the scan', schema: scanSchema } },
    problems: ['scan_not_found'],
    handle: async ({ context: { vault }, params }) =>
      json(200, scanView(await requireScan(vault, Number(params.id)))),
  }),
  route({
    method: 'DELETE',
    path: '/api/v1/endpoint-scans/{id}',
    id: 'deleteScan',
    summary: 'Delete a scan and its results',
    access,
    query: noQuery,
    replies: { 204: { description: 'deleted', contentType: 'none' } },
    problems: ['scan_not_found'],
    handle: async ({ context: { vault }, actor, params }) => {
      await deleteScan(vault, actor, Number(params.id));
      return noContent;
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/endpoint-findings',
    id: 'listFindings',
    summary: 'List the TLS servers that scans found, in the order in which they were first seen',
    access,
    query: findingsQuery,
    replies: { 200: { description: 'a page', schema: z.array(findingSchema), headers: ['Link'] } },
    problems: [],
    handle: async (call) => {
      const { scan, known, after, limit } = call.query;
      const search = {
        scan,
        after,
        limit: limit + 1,
        known: known === undefined ? undefined : known === 'true',
      };
      return pageReply(findFindings(call.context.vault, search), call, findingView, ({ id }) => id, {
        scan: scan?.toString(),
        known,
      });
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/endpoint-findings/{id}',
    id: 'getFinding',
    summary: 'Return a TLS server that a scan found, with the certificates that it sent',
    access,
    query: noQuery,
    replies: { 200: { description: 'the server', schema: wholeFindingSchema } },
    problems: ['finding_not_found'],
    handle: async ({ context: { vault }, params }) =>
      json(200, wholeFinding(await requireFinding(vault, Number(params.id)))),
  }),
];
