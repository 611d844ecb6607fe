/** The page of a deploy target. */
export function targetPage(name: string): string {
  return `/deploy-targets/${encodeURIComponent(name)}`;
}
