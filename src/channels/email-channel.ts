/**
 * Channel `email`: plain text over SMTP, with TLS and optional credentials. The library is loaded for the first mail.
 */
import { z } from 'zod';
import { second } from '../base/duration.ts';
import { isLoopbackHost } from '../base/secure-url.ts';
import { describeConnectError } from '../base/system-error.ts';
import { OutboundRefusal } from '../net/outbound-guard.ts';
import { outboundSocket } from '../net/outbound-socket.ts';
import { trustedCa } from '../net/trusted-ca.ts';
import { type ChannelContext, ChannelError, type ChannelType, type Message } from './channel.ts';
import { type SmtpFailure, smtpCodes, smtpFailure } from './smtp-failure.ts';

const address = z
  .string({ error: 'is missing; it must be an address such as vault@example.com' })
  .max(254)
  .regex(/^[^\s@,;:<>()"\\\p{C}]+@[A-Za-z0-9.-]+$/u, {
    error: 'must be an address such as vault@example.com',
  });

const config = z
  .strictObject({
    host: z
      .string({ error: 'is missing; it must be the host name of the mail server' })
      .regex(/^[A-Za-z0-9.:-]{1,253}$/, { error: 'must be the host name or address of a mail server' }),
    port: z.int().min(1).max(65535).optional(),
    security: z
      .enum(['starttls', 'tls', 'none'], { error: 'must be starttls, tls or none' })
      .default('starttls'),
    username: z.string().min(1).max(256).optional(),
    password: z.string().min(1).max(1024).optional(),
    from: address,
    to: z.array(address, { error: 'is missing; it must be a list of addresses' }).min(1).max(50),
    ca: trustedCa,
  })
  .refine(({ username, password }) => (username === undefined) === (password === undefined), {
    path: ['password'],
    message: 'must be set together with username',
  })
  .refine(({ security, password, host }) => security !== 'none' || !password || isLoopbackHost(host), {
    path: ['security'],
    message: 'must be starttls or tls if a password is set (none is allowed only for localhost)',
  });

/** `port` defaults to 587 with STARTTLS, 465 with TLS and 25 without encryption; `ca` replaces the public CAs. */
export type EmailChannelConfig = z.output<typeof config>;

export const defaultPorts = { starttls: 587, tls: 465, none: 25 } as const;
const patience = 60 * second;

export const emailChannel: ChannelType<EmailChannelConfig> = {
  type: 'email',
  title: 'plain text over SMTP',
  config,
  plain: 'password',
  gathers: true,
  target: ({ to }) => to.join(' '),
  patience: () => patience,
  maxPatience: patience,
  create: (settings, context) => ({ send: (message, signal) => mail(settings, context, message, signal) }),
};

async function mail(
  settings: EmailChannelConfig,
  { guard }: ChannelContext,
  message: Message,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { host, security, username, password, from, to, ca } = settings;
  const port = settings.port ?? defaultPorts[security];
  let unreachable: unknown;
  const { createTransport } = await import('nodemailer');
  const transport = createTransport({
    host,
    port,
    // The library would resolve the name itself.
    getSocket: (_, done) => {
      outboundSocket(guard, { host, port }, signal).then(
        (connection) => done(null, { connection }),
        (error) => {
          unreachable = error;
          done(error);
        },
      );
    },
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    ...(ca !== undefined && { tls: { ca } }),
    ...(username !== undefined && password !== undefined && { auth: { user: username, pass: password } }),
    ...{ connectionTimeout: patience / 2, greetingTimeout: patience / 2, socketTimeout: patience / 2 },
    ...{ disableFileAccess: true, disableUrlAccess: true },
  });
  try {
    const { rejectedErrors = [] } = await transport.sendMail({
      ...{ from, to, signal },
      subject: message.subject,
      text: message.text,
      date: new Date(message.timestamp),
      messageId: `<${message.id}@${from.split('@')[1] ?? 'vault'}>`,
      // Suppresses automatic replies (RFC 3834 §5).
      headers: { 'Auto-Submitted': 'auto-generated', 'X-Vault-Notification': message.type },
    });
    const refused = rejectedErrors.map(
      ({ recipient, response = '' }) => `${recipient} (${smtpCodes(response) ?? 'no code'})`,
    );
    if (refused.length === 0) return undefined;
    return `the mail server ${host} rejected ${refused.join(', ')}`;
  } catch (error) {
    if (signal.aborted)
      throw new ChannelError(`the mail server ${host} did not accept the mail in time`, { cause: error });
    const words =
      error instanceof OutboundRefusal
        ? error.message
        : unreachable === undefined
          ? `the mail server ${host} ${smtpFailure(error as SmtpFailure)}`
          : `cannot connect to the mail server ${host}: ${describeConnectError(unreachable, `${host}:${port}`)}`;
    throw new ChannelError(words, { cause: error });
  } finally {
    transport.close();
  }
}
