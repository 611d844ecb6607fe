/** All kinds of channels. */
import type { ChannelType } from './channel.ts';
import { emailChannel } from './email-channel.ts';
import { execChannel } from './exec-channel.ts';
import { webhookChannel } from './webhook-channel.ts';

/** By the word that names each, as the usage shows them. */
export const channelTypes: ReadonlyMap<string, ChannelType> = new Map(
  [checked(webhookChannel), checked(emailChannel), checked(execChannel)].map((type) => [type.type, type]),
);

/** The type with its settings parsed wherever they are used: they come from where anything may have been stored. */
function checked<Config>(type: ChannelType<Config>): ChannelType {
  return {
    ...type,
    target: (config) => type.target(type.config.parse(config)),
    patience: (config) => type.patience(type.config.parse(config)),
    create: (config, context) => type.create(type.config.parse(config), context),
  };
}
