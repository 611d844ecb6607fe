/** All types of notification channels. */
import type { ChannelType } from './channel.ts';
import { discordChannel } from './discord-channel.ts';
import { emailChannel } from './email-channel.ts';
import { execChannel } from './exec-channel.ts';
import { gotifyChannel } from './gotify-channel.ts';
import { ntfyChannel } from './ntfy-channel.ts';
import { opsgenieChannel } from './opsgenie-channel.ts';
import { pagerdutyChannel } from './pagerduty-channel.ts';
import { slackChannel } from './slack-channel.ts';
import { teamsChannel } from './teams-channel.ts';
import { telegramChannel } from './telegram-channel.ts';
import { webhookChannel } from './webhook-channel.ts';

/** By type name, in the order of the help text. */
export const channelTypes: ReadonlyMap<string, ChannelType> = new Map(
  [
    ...[checked(webhookChannel), checked(emailChannel), checked(execChannel)],
    ...[checked(slackChannel), checked(teamsChannel), checked(discordChannel), checked(telegramChannel)],
    ...[checked(ntfyChannel), checked(gotifyChannel), checked(pagerdutyChannel), checked(opsgenieChannel)],
  ].map((type) => [type.type, type]),
);

/** Whether channels of this type combine pending messages into one. */
export function isGathering(type: string): boolean {
  return channelTypes.get(type)?.gathers === true;
}

/** The type with its settings validated at each use, because stored settings may come from any version. */
function checked<Config>(type: ChannelType<Config>): ChannelType {
  return {
    ...type,
    target: (config) => type.target(type.config.parse(config)),
    patience: (config) => type.patience(type.config.parse(config)),
    create: (config, context) => type.create(type.config.parse(config), context),
  };
}
