/** Channel `discord`: an embed for a webhook of Discord. It mentions no one. */
import { z } from 'zod';
import { trustedCa } from '../net/trusted-ca.ts';
import { chatChannel, webhookUrl } from './chat-channel.ts';
import { type ChatMessage, codeText, cut, type Severity } from './chat-message.ts';

const config = z.strictObject({ url: webhookUrl, ca: trustedCa });

/** Sizes that Discord accepts; the description leaves room for the backticks. */
const most = { title: 256, description: 4096 - 8, field: 1024 };

const colors: Readonly<Record<Severity, number>> = {
  critical: 0xb9_1c_1c,
  error: 0xdc_26_26,
  warning: 0xd9_77_06,
  info: 0x25_63_eb,
};
const recovered = 0x16_a3_4a;

/** Markdown that a title or a field would show formatted. */
const encode = (character: string): string =>
  /[\\*_~`|>[\]()#<@]/.test(character) ? `\\${character}` : character;

export const discordChannel = chatChannel({
  type: 'discord',
  title: 'Discord',
  config,
  plain: 'url',
  gathers: true,
  request: ({ url }, message) => ({
    url,
    body: { embeds: [embed(message)], allowed_mentions: { parse: [] } },
  }),
});

function embed({
  label,
  severity,
  isRecovery,
  title,
  text,
  timestamp,
  certificate,
  link,
}: ChatMessage): object {
  return {
    title: cut(title, most.title, { encode }),
    description: `\`\`\`\n${cut(codeText(text), most.description)}\n\`\`\``,
    color: isRecovery ? recovered : colors[severity],
    timestamp,
    ...(link !== undefined && { url: link }),
    fields: [
      { name: 'Severity', value: label, inline: true },
      ...(certificate === undefined
        ? []
        : [{ name: 'Certificate', value: cut(certificate, most.field, { encode }), inline: true }]),
    ],
  };
}
