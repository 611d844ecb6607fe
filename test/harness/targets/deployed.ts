/** Deploy targets of a test's vault, and a node of Proxmox VE, which can be asked what is installed. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { createDeployTargetInput } from '../../../src/domain/deploy-targets/deploy-target-inputs.ts';
import {
  type TargetCertificateView,
  viewDeployTarget,
} from '../../../src/domain/deploy-targets/deploy-target-views.ts';
import { addDeployTarget } from '../../../src/domain/deploy-targets/deploy-targets.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { written } from '../notifications/fixtures.ts';

/** Signs the requests of webhook targets. */
export const webhookSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

/** Adds a webhook target for this URL, by default `hook` for the certificate `web`. */
export function addWebhookTarget(vault: Vault, url: string, others: object = {}): Promise<void> {
  return addTarget(vault, { type: 'webhook', name: 'hook', ...others }, { url, secret: webhookSecret });
}

/** Adds a target, by default for the certificate `web`. */
export function addTarget(vault: Vault, input: object, settings: object): Promise<void> {
  const parsed = parseInput(createDeployTargetInput, { certificates: ['web'], ...input });
  return addDeployTarget(vault, localCli, parsed, written(settings));
}

/** A certificate on a target, as the API shows it. */
export async function onTarget(
  vault: Vault,
  target: string,
  certificate = 'web',
): Promise<TargetCertificateView> {
  const { certificates } = await viewDeployTarget(vault, target);
  const found = certificates.find((one) => one.certificate === certificate);
  assert(found, `${certificate} is not on ${target}`);
  return found;
}

export type ProxmoxNode = {
  readonly settings: { readonly url: string; readonly token: string; readonly node: string };
  /** `ask` and `upload`, in the order of the requests. */
  readonly requests: string[];
  /** Installs another certificate, as a person on the node does. */
  readonly replace: () => void;
};

/** Starts a node. It stops when the test ends. */
export async function proxmoxNode(t: Pick<TestContext, 'after'>): Promise<ProxmoxNode> {
  const requests: string[] = [];
  let fingerprint = '00';
  const respond = (response: ServerResponse, data: unknown) =>
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ data }));
  const server = createServer(async (request, response) => {
    const body = await text(request);
    if (request.method === 'POST') {
      requests.push('upload');
      const pem = new URLSearchParams(body).get('certificates') ?? '';
      fingerprint = new X509Certificate(pem).fingerprint256;
      respond(response, { filename: 'pveproxy-ssl.pem', fingerprint });
      return;
    }
    requests.push('ask');
    respond(response, [{ filename: 'pveproxy-ssl.pem', fingerprint }]);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const replace = () => {
    fingerprint = '00';
  };
  return { settings: { url, token: 'root@pam!vault=t0ken', node: 'pve1' }, requests, replace };
}
