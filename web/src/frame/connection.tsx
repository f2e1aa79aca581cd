import { useQueryClient } from "@tanstack/react-query";
import { CloudOff } from "lucide-react";
import { useSyncExternalStore } from "react";
import { connection } from "../api/request.ts";
import { Button } from "../ui/button.tsx";
import { exactTime } from "../ui/format.ts";

function subscribe(listener: () => void): () => void {
  window.addEventListener("online", listener);
  window.addEventListener("offline", listener);
  return () => {
    window.removeEventListener("online", listener);
    window.removeEventListener("offline", listener);
  };
}

/** Says that the data may be outdated while the browser is offline or the server does not respond. */
export function ConnectionBanner() {
  const client = useQueryClient();
  const isOnline = useSyncExternalStore(subscribe, () => navigator.onLine);
  const { isLost, last_response_ms } = connection.use();
  if (isOnline && !isLost) return null;
  return (
    <div
      role="status"
      className="flex min-h-9 shrink-0 items-center gap-2 border-line border-b bg-error-bg px-6 py-1 text-table max-sm:px-4"
    >
      <CloudOff size={14} aria-hidden className="shrink-0 text-error" />
      <span className="min-w-0 flex-1">
        {isOnline ? "The server is not responding." : "You are offline."} Data may be outdated: last update{" "}
        {exactTime(new Date(last_response_ms))}.
      </span>
      {isOnline && (
        <Button small onClick={() => void client.invalidateQueries()}>
          Try again
        </Button>
      )}
    </div>
  );
}
