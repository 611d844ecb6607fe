/**
 * The plain part of a connection before TLS, for STARTTLS: reads lines and bytes of a server that is not trusted, never
 * more than a fixed amount in all.
 */
import type { Duplex } from 'node:stream';

/** What a server may send before TLS: the greetings of real servers have a few hundred bytes. */
export const maxPlainBytes = 16_384;

/** The server does not speak the protocol, or does not offer TLS. The message is a clause for people. */
export class StartTlsFailure extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'StartTlsFailure';
  }
}

export class Wire {
  readonly #socket: Duplex;
  readonly #received = Buffer.alloc(maxPlainBytes);
  #end = 0;
  #at = 0;
  #failure: Error | undefined;
  #changed = Promise.withResolvers<void>();

  constructor(socket: Duplex) {
    this.#socket = socket;
    socket.on('data', this.#take);
    socket.on('error', this.#fail);
    socket.on('close', this.#closed);
  }

  send(data: string | Buffer): void {
    this.#socket.write(data);
  }

  /** The next line without its end, as Latin-1. */
  async line(): Promise<string> {
    return (await this.#until('\n')).replace(/\r?\n$/, '');
  }

  /** Everything up to the next `mark`, with it, as Latin-1. */
  until(mark: string): Promise<string> {
    return this.#until(mark);
  }

  /** The next `count` bytes. */
  async bytes(count: number): Promise<Buffer> {
    if (this.#at + count > maxPlainBytes) throw tooMuch();
    while (this.#end - this.#at < count) await this.#more();
    this.#at += count;
    return this.#received.subarray(this.#at - count, this.#at);
  }

  /**
   * Hands the connection to TLS. Throws StartTlsFailure if the server sent anything since what was read last: in plain
   * text, anyone could have added it (CVE-2011-0411).
   */
  release(): void {
    this.#socket.off('data', this.#take);
    this.#socket.off('error', this.#fail);
    this.#socket.off('close', this.#closed);
    this.#socket.pause();
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#at < this.#end) throw new StartTlsFailure('the server sent more before TLS than its reply');
  }

  async #until(mark: string): Promise<string> {
    // Each byte is searched once, however slowly they come.
    let from = this.#at;
    for (;;) {
      const found = this.#received.subarray(0, this.#end).indexOf(mark, from, 'latin1');
      if (found !== -1) {
        const text = this.#received.toString('latin1', this.#at, found + mark.length);
        this.#at = found + mark.length;
        return text;
      }
      from = Math.max(this.#at, this.#end - mark.length + 1);
      await this.#more();
    }
  }

  async #more(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    await this.#changed.promise;
    if (this.#failure !== undefined) throw this.#failure;
  }

  readonly #take = (chunk: Buffer): void => {
    if (this.#end + chunk.length > maxPlainBytes) {
      this.#fail(tooMuch());
      return;
    }
    chunk.copy(this.#received, this.#end);
    this.#end += chunk.length;
    this.#wake();
  };

  readonly #closed = (): void => this.#fail(new StartTlsFailure('the server closed the connection'));

  readonly #fail = (error: Error): void => {
    this.#failure ??= error;
    this.#socket.pause();
    this.#wake();
  };

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

function tooMuch(): StartTlsFailure {
  return new StartTlsFailure(`the server sent more than ${maxPlainBytes / 1024} KiB before TLS`);
}
