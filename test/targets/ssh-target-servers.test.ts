/** Deploy targets of the type ssh on servers other than OpenSSH's: with passwords, less SFTP, slow and hostile. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { suite, type TestContext, test } from 'node:test';
import ssh2 from 'ssh2';
import { eventually } from '../harness/eventually.ts';
import {
  listening,
  type SftpServer,
  type SftpServerOptions,
  sftpServer,
} from '../harness/targets/sftp-server.ts';
import {
  failure,
  install,
  isInstalled,
  material,
  type SshSettings,
} from '../harness/targets/ssh-fixtures.ts';

const { STATUS_CODE } = ssh2.utils.sftp;
const { private: hostKey, public: publicKey } = ssh2.utils.generateKeyPairSync('ed25519');
const password = 'correct horse';

const files = { private_key: '/tls/web.key', fullchain: '/tls/web.pem' };

const settingsFor = (port: number, others: Partial<SshSettings> = {}): SshSettings => ({
  ...{ port, host_key: publicKey, password, files, ...others },
});

async function started(t: TestContext, options: Partial<SftpServerOptions> = {}) {
  const server = await sftpServer(t, { hostKey, password, ...options });
  return { server, settings: settingsFor(server.port) };
}

/** The target closes its connection, although this server would keep it open. */
async function assertClosed({ sockets }: Pick<SftpServer, 'sockets'>): Promise<void> {
  await eventually('the connection to close', () =>
    [...sockets].every((socket) => socket.readableEnded || socket.destroyed),
  );
}

suite('passwords', () => {
  test('a user signs in with a password, and a wrong one is rejected without being shown', async (t) => {
    const { server, settings } = await started(t);
    await install(settings);
    assert.equal(server.files.get('/tls/web.pem')?.toString(), material().fullchain);
    const message = await failure(install({ ...settings, password: 'wrong secret' }));
    assert.equal(message, 'the server rejected the user vault and its password');
    await assertClosed(server);
  });
});

suite('a server whose SFTP cannot rename over a file', () => {
  test('gets the private key first, and files replaced without leftovers', async (t) => {
    const { server, settings } = await started(t);
    server.files.set('/tls/web.pem', Buffer.from('before'));
    await install(settings);
    assert.deepEqual([...server.files.keys()].sort(), ['/tls/web.key', '/tls/web.pem']);
    assert.equal(server.files.get('/tls/web.pem')?.toString(), material().fullchain);
    assert.deepEqual(server.changes, [
      'create /tls/web.key.vault-new',
      'create /tls/web.pem.vault-new',
      'rename /tls/web.key.vault-new /tls/web.key',
      'rename /tls/web.pem /tls/web.pem.vault-old',
      'rename /tls/web.pem.vault-new /tls/web.pem',
      'remove /tls/web.pem.vault-old',
    ]);
  });

  test('has the files of before if a rename fails', async (t) => {
    const { server, settings } = await started(t, {
      prepare: (sftp) =>
        sftp.prependListener('RENAME', (_, from) => {
          // The file that is renamed next is gone.
          if (from === '/tls/web.pem.vault-new') server.files.delete(from);
        }),
    });
    server.files.set('/tls/web.pem', Buffer.from('before'));
    const message = await failure(install(settings));
    assert.match(
      message,
      /^failed to rename \/tls\/web\.pem\.vault-new to \/tls\/web\.pem: Failure, which the server/,
    );
    assert.deepEqual([...server.files.keys()].sort(), ['/tls/web.key', '/tls/web.pem']);
    assert.equal(server.files.get('/tls/web.pem')?.toString(), 'before');
  });
});

test('a file that does not fit on the disk leaves the files of before and nothing else', async (t) => {
  const { server, settings } = await started(t, {
    prepare: (sftp) => {
      sftp.removeAllListeners('WRITE');
      sftp.on('WRITE', (id) => sftp.status(id, STATUS_CODE.FAILURE));
    },
  });
  server.files.set('/tls/web.pem', Buffer.from('before'));
  const message = await failure(install(settings));
  assert.equal(
    message,
    'failed to write /tls/web.key.vault-new: Failure, which the server does not explain; its disk may be full',
  );
  assert.deepEqual([...server.files], [['/tls/web.pem', Buffer.from('before')]]);
});

test('a server that tells no permissions and owners of files gets those of new files', async (t) => {
  const set: unknown[] = [];
  const { server, settings } = await started(t, {
    attributes: (content) => ({ size: content.length }),
    prepare: (sftp) =>
      sftp.prependListener('SETSTAT', (_, path, { mode, uid }) => set.push([path, mode, uid])),
  });
  server.files.set('/tls/web.pem', Buffer.from('before'));
  await install(settings);
  assert.deepEqual(set, [
    ['/tls/web.key.vault-new', 0o600, undefined],
    ['/tls/web.pem.vault-new', 0o644, undefined],
  ]);
  assert.equal(await isInstalled(settings), true);
});

test('the daily check reads the certificates and no byte of the private key', async (t) => {
  const { server, settings } = await started(t);
  const config = { ...settings, files: { ...files, combined: '/tls/both' } };
  await install(config);
  assert.equal(await isInstalled(config), true);
  const keyLength = material().privateKey.expose().length;
  assert(
    server.reads.every(
      ({ path, from }) => path === '/tls/web.pem' || (path === '/tls/both' && from >= keyLength),
    ),
  );
  assert.deepEqual(new Set(server.reads.map(({ path }) => path)), new Set(['/tls/both', '/tls/web.pem']));
});

suite('a server that ends an SFTP session', () => {
  test('between two operations gets the next one in a new session', async (t) => {
    let sessions = 0;
    const { server, settings } = await started(t, {
      prepare: (sftp) => {
        sessions += 1;
        sftp.on('CLOSE', () => {
          sftp.end();
        });
      },
    });
    await install(settings);
    assert.deepEqual([...server.files.keys()].sort(), ['/tls/web.key', '/tls/web.pem']);
    assert(sessions >= 2);
  });

  test('during an operation makes it fail', async (t) => {
    const { server, settings } = await started(t, {
      prepare: (sftp) => {
        sftp.removeAllListeners('WRITE');
        sftp.on('WRITE', () => sftp.end());
      },
    });
    assert.match(
      await failure(install(settings)),
      /^failed to write \/tls\/web\.key\.vault-new: the server closed the session$/,
    );
    assert.deepEqual([...server.files], []);
    await assertClosed(server);
  });
});

suite('a server that closes the connection', () => {
  const closed = 'the server closed the connection';
  const cases: readonly (readonly [string, Partial<SftpServerOptions>, string])[] = [
    [
      'during an operation on files',
      { prepare: (sftp, client) => sftp.prependListener('WRITE', () => client.end()) },
      closed,
    ],
    ['while the command runs', { run: (_command, _channel, client) => client.end() }, closed],
    [
      'without the exit code of the command',
      { run: (_command, channel) => channel.end() },
      'the server closed the connection while the command ran',
    ],
  ];
  for (const [name, options, expected] of cases) {
    test(`${name} makes the installation fail`, async (t) => {
      const { server, settings } = await started(t, options);
      assert.equal(await failure(install({ ...settings, command: 'reload' })), expected);
      await assertClosed(server);
    });
  }

  test('before SSH begins is reported', async (t) => {
    const server = await listening(t, (socket) => socket.resume().end());
    assert.match(await failure(install(settingsFor(server.port))), /^SSH: Connection lost before handshake/);
    await assertClosed(server);
  });

  test('with a reset is reported', async (t) => {
    const { server, settings } = await started(t, {
      run: () => {
        for (const socket of server.sockets) socket.resetAndDestroy();
      },
    });
    const message = await failure(install({ ...settings, command: 'reload' }));
    assert.equal(message, 'lost the connection: connection reset');
  });
});

suite('a server that does not respond', () => {
  const silent: readonly (readonly [
    string,
    (t: TestContext) => Promise<{ port: number; sockets: SftpServer['sockets'] }>,
  ])[] = [
    ['from the beginning', (t) => listening(t, (socket) => socket.resume())],
    [
      'after its identification',
      (t) => listening(t, (socket) => socket.resume().write('SSH-2.0-silent\r\n')),
    ],
    [
      'to an operation on files',
      async (t) => {
        const { server } = await started(t, {
          prepare: (sftp) => sftp.removeAllListeners('STAT').on('STAT', () => undefined),
        });
        return server;
      },
    ],
    ['while a command runs', async (t) => (await started(t, { run: () => undefined })).server],
  ];
  for (const [name, start] of silent) {
    test(`${name} is given up at the deadline, and its connection is closed`, async (t) => {
      const server = await start(t);
      const deadline = new AbortController();
      const work = failure(
        install({ ...settingsFor(server.port), command: 'reload' }, { signal: deadline.signal }),
      );
      await eventually('a connection', () => server.sockets.size > 0);
      // The server is reached and, in the later cases, busy with the request that it does not respond to.
      for (let turn = 0; turn < 200; turn += 1) await new Promise(setImmediate);
      deadline.abort();
      assert.equal(await work, '127.0.0.1 did not answer in time');
      await assertClosed(server);
    });
  }

  test('is not connected to after the deadline', async (t) => {
    const { server, settings } = await started(t);
    assert.equal(
      await failure(install(settings, { signal: AbortSignal.abort() })),
      '127.0.0.1 did not answer in time',
    );
    assert.equal(server.sockets.size, 0);
  });
});

suite('hostility', () => {
  test('a server that sends lines without end in place of its identification is disconnected', async (t) => {
    const server = await listening(t, (socket) => {
      const send = () => {
        while (socket.writable && socket.write('Welcome\r\n'.repeat(1000)));
      };
      socket.resume().on('drain', send);
      send();
    });
    assert.match(
      await failure(install(settingsFor(server.port))),
      /^SSH: (Max|Header|the server sends too much)/,
    );
    await assertClosed(server);
  });

  test('a server that sends requests without end before it accepts the user is disconnected', async (t) => {
    const { server, settings } = await started(t, {
      authenticate: (_context, client) => {
        const { _protocol: protocol } = client as unknown as { _protocol: { ping(): void } };
        const send = () => {
          for (let request = 0; request < 1000; request += 1) protocol.ping();
          if ([...server.sockets].some((socket) => socket.writable)) setImmediate(send);
        };
        send();
      },
    });
    assert.equal(await failure(install(settings)), 'the server sends too much');
    await assertClosed(server);
  });

  test('a server that sends random bytes and stays connected is disconnected', async (t) => {
    const server = await listening(t, (socket) => {
      socket.resume().write('SSH-2.0-hostile\r\n');
      socket.write(randomBytes(4096));
    });
    assert.match(await failure(install(settingsFor(server.port))), /^SSH: /);
    await assertClosed(server);
  });

  for (const [name, size] of [
    ['larger than it is', 2 ** 50],
    ['as large as the certificates, but never ends', undefined],
  ] as const) {
    test(`a server that reports a file ${name} is read no further than the certificates`, async (t) => {
      const { server, settings } = await started(t, {
        attributes: () => ({
          mode: 0o100_644,
          uid: 0,
          gid: 0,
          size: size ?? Buffer.byteLength(material().fullchain),
        }),
      });
      server.files.set('/tls/web.pem', Buffer.alloc(10_000_000, 'x'));
      assert.equal(await isInstalled({ ...settings, files: { fullchain: '/tls/web.pem' } }), false);
      const read = server.reads.reduce((sum, { from, to }) => sum + to - from, 0);
      assert.equal(read, size === undefined ? Buffer.byteLength(material().fullchain) : 0);
    });
  }

  test('a server that sends more of a file than was requested has no matching file', async (t) => {
    const { settings } = await started(t, {
      prepare: (sftp) =>
        sftp.removeAllListeners('READ').on('READ', (id) => sftp.data(id, Buffer.alloc(200_000, 'x'))),
    });
    await install(settings);
    assert.equal(await isInstalled(settings), false);
  });

  test('a server that explains a failure with a long text has it cut and cleaned', async (t) => {
    const { settings } = await started(t, {
      prepare: (sftp) =>
        sftp
          .removeAllListeners('WRITE')
          .on('WRITE', (id) => sftp.status(id, STATUS_CODE.FAILURE, `\u001b[2J${'x'.repeat(20_000)}`)),
    });
    const message = await failure(install(settings));
    assert(message.length < 1100, String(message.length));
    assert.match(message, /^failed to write \/tls\/web\.key\.vault-new: {2}\[2Jx+…$/);
  });

  test('a server whose command prints without end is disconnected', async (t) => {
    const { server, settings } = await started(t, {
      run: (_command, channel) => {
        const print = () => {
          while (channel.writable && channel.write(Buffer.alloc(32_768, 'x')));
        };
        channel.on('drain', print).on('error', () => undefined);
        print();
      },
    });
    const message = await failure(install({ ...settings, command: 'reload' }));
    assert.equal(message, 'lost the connection: the server sends too much');
    await assertClosed(server);
  });
});
