/**
 * step-ca (smallstep), a CA in Go with an ACME server, which `go install` builds. It validates each name: here by
 * http-01, the cheapest of its challenges, with a name server and a web server in this process that answer at once.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { encodePem } from '../src/crypto/pem.ts';
import { goFolders } from '../test/harness/ca/pebble-files.ts';
import { makeChain } from '../test/harness/ca/private-chain.ts';
import { findProgram } from '../test/harness/processes/missing-program.ts';
import { freePort } from '../test/harness/processes/port.ts';
import type { AcmeServer } from './acme-client.ts';
import { type RunningProcess, serverCore, startProcess } from './server-process.ts';

/** The program; undefined if it is not installed. */
export const stepCa = findProgram('step-ca', goFolders);

export type StepCa = RunningProcess & { readonly acme: AcmeServer };

/** Starts step-ca with a new CA of P-256 keys and its usual database, on a core of its own. */
export async function startStepCa(program: string, directory: string): Promise<StepCa> {
  const { root, intermediate } = await makeChain({ keyType: 'ec256' });
  const file = (name: string, text: string) => {
    writeFileSync(join(directory, name), text, { mode: 0o600 });
    return join(directory, name);
  };
  const ca = encodePem('CERTIFICATE', root.certificate);
  const port = await freePort();
  const config = {
    root: file('root.pem', ca),
    crt: file('intermediate.pem', encodePem('CERTIFICATE', intermediate.certificate)),
    key: file('intermediate.key', encodePem('PRIVATE KEY', intermediate.privateKey.expose())),
    address: `127.0.0.1:${port}`,
    dnsNames: ['127.0.0.1'],
    db: { type: 'badgerv2', dataSource: join(directory, 'db') },
    authority: { provisioners: [{ type: 'ACME', name: 'bench', challenges: ['http-01'] }] },
    logger: { format: 'text' },
  };
  const validation = await answerChallenges();
  const options = ['--quiet', '--insecure', '--acme-http-port', `${validation.port}`];
  const command = [
    program,
    file('ca.json', JSON.stringify(config)),
    ...options,
    '--resolver',
    validation.resolver,
  ];
  const server = startProcess(command, { cores: serverCore, log: join(directory, 'step-ca.log') });
  const { publish } = validation;
  const acme = { directory: `https://127.0.0.1:${port}/acme/bench/directory`, ca, publish };
  const stop = async () => {
    await server.stop();
    validation.close();
  };
  await listening(port);
  return { ...server, stop, acme };
}

/** Resolves all names to 127.0.0.1, and serves what was published. */
async function answerChallenges() {
  const published = new Map<string, string>();
  const web = createServer((request, response) => {
    const token = request.url?.split('/').at(-1) ?? '';
    response.end(published.get(token));
    published.delete(token);
  });
  web.listen(0, '127.0.0.1');
  await once(web, 'listening');
  const names = createSocket('udp4', (query, { port, address }) =>
    names.send(addressAnswer(query), port, address),
  );
  names.bind(0, '127.0.0.1');
  await once(names, 'listening');
  return {
    port: (web.address() as AddressInfo).port,
    resolver: `127.0.0.1:${names.address().port}`,
    publish: (token: string, authorization: string) => void published.set(token, authorization),
    close: () => {
      web.closeAllConnections();
      web.close();
      names.close();
    },
  };
}

/** The answer to a query with one question (RFC 1035 §4): 127.0.0.1 for type A, and nothing for others. */
function addressAnswer(query: Buffer): Buffer {
  const end = query.indexOf(0, 12) + 5;
  const isAddress = query.readUInt16BE(end - 4) === 1;
  const head = Buffer.from(query.subarray(0, end));
  head.writeUInt16BE(0x8580, 2);
  head.writeUInt16BE(isAddress ? 1 : 0, 6);
  head.writeUInt32BE(0, 8);
  return isAddress ? Buffer.concat([head, Buffer.from('c00c00010001000000ff00047f000001', 'hex')]) : head;
}

async function listening(port: number): Promise<void> {
  const { connect } = await import('node:net');
  for (let left = 100; ; left -= 1) {
    const socket = connect(port, '127.0.0.1');
    try {
      await once(socket, 'connect');
      return;
    } catch (error) {
      if (left === 0) throw new Error('step-ca did not start', { cause: error });
      await sleep(100);
    } finally {
      socket.destroy();
    }
  }
}
