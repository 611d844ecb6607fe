/** The first message of real TLS clients, without anybody to answer it. */
import { once } from 'node:events';
import { duplexPair } from 'node:stream';
import { type ConnectionOptions, connect } from 'node:tls';

/** The ClientHello, in its record, of a client with these options; it asks for www.example.test unless they say otherwise. */
export async function helloOf(options: ConnectionOptions): Promise<Buffer> {
  const [ours, theirs] = duplexPair();
  const client = connect({ socket: theirs, servername: 'www.example.test', ...options });
  client.on('error', () => {
    // It is left without an answer.
  });
  const [bytes] = (await once(ours, 'data')) as [Buffer];
  client.destroy();
  return bytes;
}
