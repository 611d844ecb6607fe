/** The foot of a list that is loaded a page at a time. */
import { Button } from './button.tsx';

export function More({
  isShown,
  isBusy,
  onMore,
}: {
  readonly isShown: boolean;
  readonly isBusy: boolean;
  readonly onMore: () => Promise<void>;
}) {
  if (!isShown) return null;
  return (
    <div class="more">
      <Button isBusy={isBusy} onClick={() => void onMore()}>
        Show older ones
      </Button>
    </div>
  );
}
