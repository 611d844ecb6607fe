/** Captures the first message of a real TLS client. */
import { once } from 'node:events';
import { duplexPair } from 'node:stream';
import { type ConnectionOptions, connect } from 'node:tls';

/** The ClientHello, with its record, of a client with these options; by default for www.example.test. */
export async function helloOf(options: ConnectionOptions): Promise<Buffer> {
  const [ours, theirs] = duplexPair();
  const client = connect({ socket: theirs, servername: 'www.example.test', ...options });
  client.on('error', () => {
    // The client gets no response.
  });
  const [bytes] = (await once(ours, 'data')) as [Buffer];
  client.destroy();
  return bytes;
}
