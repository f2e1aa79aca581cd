import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { removeShell, SignInGate } from "./frame/sign-in.tsx";
import { followTheme } from "./frame/theme.ts";
import { createAppRouter } from "./router.tsx";
import "./theme.css";
import { QueryClient } from "@tanstack/react-query";
import { IS_PUBLIC_PAGE, RequestError } from "./api/request.ts";
import { sessionQuery } from "./api/session.ts";
import { Toasts } from "./ui/overlay/toast.tsx";

followTheme();
if (IS_PUBLIC_PAGE) removeShell();

/** Whether to retry a request: only if the server is unreachable or unavailable (503). Other requests would be rejected again. */
const isRetryable = (error: Error): boolean =>
  error instanceof RequestError && (error.status === 0 || error.status === 503);

const client = new QueryClient({
  defaultOptions: {
    queries: { retry: (failures, error) => failures < 3 && isRetryable(error), staleTime: 5_000 },
  },
});
const router = createAppRouter(client);
// Loads the session in parallel with the page's code. Except on public pages, nothing is shown until the session has loaded.
if (!IS_PUBLIC_PAGE) void client.prefetchQuery(sessionQuery);
void router.load();

createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      {IS_PUBLIC_PAGE ? (
        <RouterProvider router={router} />
      ) : (
        <SignInGate>
          <RouterProvider router={router} />
        </SignInGate>
      )}
      <Toasts />
    </QueryClientProvider>
  </StrictMode>,
);
