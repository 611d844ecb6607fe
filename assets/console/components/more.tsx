/** The button under a list that loads its next page. */
import { Button } from './button.tsx';

export function More({
  label = 'Show older',
  isShown,
  isBusy,
  onMore,
}: {
  readonly label?: string;
  readonly isShown: boolean;
  readonly isBusy: boolean;
  readonly onMore: () => Promise<void>;
}) {
  if (!isShown) return null;
  return (
    <div class="more">
      <Button isBusy={isBusy} onClick={() => void onMore()}>
        {label}
      </Button>
    </div>
  );
}
