/** An external link, or plain text if the URL is not http(s): for every URL from a CA or another server. */
import { webAddress } from '../text/web-address.ts';

export function WebLink({ to, label = to }: { readonly to: string; readonly label?: string }) {
  const address = webAddress(to);
  if (address === undefined) return <span title={to}>{label === to ? to : `${label} (${to})`}</span>;
  return (
    <a href={address} target="_blank" rel="noreferrer">
      {label}
    </a>
  );
}
