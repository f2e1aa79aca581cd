import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { createQueryClient } from "./api/query-client.ts";
import { SignInGate } from "./frame/sign-in.tsx";
import { followTheme } from "./frame/theme.ts";
import { createAppRouter } from "./router.tsx";
import "./theme.css";
import { Toasts } from "./ui/toast.tsx";
import { TooltipProvider } from "./ui/tooltip.tsx";

followTheme();
const client = createQueryClient();
const router = createAppRouter(client);
// The page's code is fetched while the server is asked who looks; until it has said that nothing is shown.
void router.load();

createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <TooltipProvider>
        <SignInGate>
          <RouterProvider router={router} />
        </SignInGate>
        <Toasts />
      </TooltipProvider>
    </QueryClientProvider>
  </StrictMode>,
);
