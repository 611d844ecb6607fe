/** Binds listeners to their addresses, with errors for operators. */

import type { AddressInfo, Server } from 'node:net';
import { OperatorError } from '../base/operator-error.ts';
import { describeSystemError } from '../base/system-error.ts';

export type ListenAddress = {
  readonly host: string;
  readonly port: number;
};

/** The option that sets an address, and an example value, for error messages. */
export type ListenOption = { readonly option: string; readonly example: string };

/**
 * Connections that may wait to be accepted; the system may allow fewer. If the queue is full, further clients retry
 * after one, three and seven seconds; all waiting connections are accepted in one turn of the event loop.
 */
const backlog = 1024;

/** Makes the server listen and returns `host:port` with the actual port. Throws OperatorError. */
export async function listen(
  server: Server,
  { host, port }: ListenAddress,
  named: ListenOption,
): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    const refuse = (error: Error) => reject(listenError(error, placeOf(host, port), named));
    server.once('error', refuse);
    server.listen({ port, host, backlog }, () => {
      server.off('error', refuse);
      resolve();
    });
  });
  return placeOf(host, (server.address() as AddressInfo).port);
}

function placeOf(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function listenError(
  error: NodeJS.ErrnoException,
  place: string,
  { option, example }: ListenOption,
): OperatorError {
  const refused = (message: string, hint: string) =>
    new OperatorError(`cannot listen on ${place}: ${message}`, { hint, cause: error });
  switch (error.code) {
    case 'EADDRINUSE':
      return refused(
        'the port is already in use',
        `Stop the other program, or choose another port with ${option}.`,
      );
    case 'EACCES':
      return refused(
        'permission denied for this port',
        `Choose a port of 1024 or higher with ${option}, or grant CAP_NET_BIND_SERVICE.`,
      );
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return refused(
        'this host does not have the address',
        `Set ${option} to an address of this host, such as ${example}.`,
      );
    default:
      return new OperatorError(`cannot listen on ${place}: ${describeSystemError(error)}`, { cause: error });
  }
}
